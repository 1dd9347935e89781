// μ, Σ of the model and S, Q of every candidate, kept current while bases come and go: the state of sequential.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "_blas.hpp"
#include "_joint.hpp"
#include "_posterior.hpp"
#include "_problem.hpp"
#include "_rules.hpp"

namespace sequential {

using rules::OUT;

struct Move {
    double gain = 0.0, alpha = OUT;
    std::int64_t j = -1;
    size_t place = 0;  // in the model, where it is in
};

// Actions keep current what is in the model and `near` it; `survey` computes everything and asks again who is near.
class Candidates {
public:
    const Problem problem;
    const Constants constants;
    Indices active;
    Vector alpha, S, Q;
    Posterior posterior;
    Indices near;         // S and Q of other candidates are those of the last survey,
    double beyond = 0.0;  // when this was the largest gain of one of them
    double noise, evidence = 0.0, objective = 0.0;
    std::vector<int> copies;  // of how many in the model each candidate is a multiple
    std::vector<Vector> gram;  // ΦᵀΦ_active, a column of all candidates for each in the model
    rules::NoiseTerms terms{};

    Candidates(Problem problem_, Constants constants_, const Indices &start, const Vector &start_alpha, double noise_)
        : problem(std::move(problem_)),
          constants(std::move(constants_)),
          alpha(problem.n_columns(), OUT),
          S(problem.n_columns()),
          Q(problem.n_columns()),
          noise(noise_),
          copies(problem.n_columns(), 0),
          mean(posterior.mean),
          Sigma(posterior.Sigma),
          starting(start),
          flat(problem.rate == 0.0 && problem.a == 0.0 &&
               std::none_of(problem.b.begin(), problem.b.end(), [](double rate) { return rate != 0.0; })) {
        for (size_t k = 0; k < start.size(); ++k) take_in(start[k], start_alpha[k]);
        starting.clear();
        survey();
    }

    Candidates(const Candidates &) = delete;  // some members stand for parts of others

    // The columns that will probably be asked for next: the rest of the start, then the candidates near the model.
    Indices expected() const {
        if (!starting.empty()) return starting;
        return Indices(near.begin(), near.begin() + std::min<size_t>(constants.prefetch, near.size()));
    }

    bool is_copy(std::int64_t j) const { return copies[j] > 0; }
    bool is_flat() const { return flat; }

    // s and q of the basis at this place in the model, by γ/Σ_jj and μ_j/Σ_jj, which do not cancel.
    double s_inside(size_t place) const {
        const double var = Sigma(place, place);
        return std::clamp(1 - alpha[active[place]] * var, 0.0, 1.0) / var;
    }
    double q_inside(size_t place) const { return mean[place] / Sigma(place, place); }

    // What one basis more would cost, and what one of those inside does.
    double price_outside() { return total_price(active.size() + 1) - total_price(active.size()); }
    double price_inside() { return active.empty() ? 0.0 : total_price(active.size()) - total_price(active.size() - 1); }

    // What a candidate outside the model would bring, and at which precision.
    Move entry(std::int64_t j) {
        if (is_copy(j)) return {0.0, OUT, j};
        const double to = rules::candidate(S[j], Q[j], problem.a, problem.b[j], pull());
        const double brings = rules::gain(to, S[j], Q[j], pull()) - price_outside();
        return brings > 0 ? Move{brings, to, j} : Move{0.0, OUT, j};
    }

    // Nats to be had from the noise variance; none when it would go below its floor.
    double noise_gain() const {
        if (noise <= constants.noise_floor && terms.mackay() <= constants.noise_floor) return 0.0;
        return terms.gain();
    }

    void update_noise() {
        noise = std::max(terms.mackay(), constants.noise_floor);
        refresh();
    }

    // Multiply σ² and all prior variances by one factor, the best, in closed form: μ stays, Σ grows with it, S and Q
    // shrink.
    void rescale() {
        double penalty = 0.0;
        for (size_t k = 0; k < active.size(); ++k) penalty += alpha[active[k]] * mean[k] * mean[k];
        const double best = (2 * problem.d + residual + noise * penalty) / (2 * problem.c + problem.n);
        const double to = std::max(best, constants.noise_floor), factor = to / noise;
        objective -= (0.5 * problem.n + problem.c) * (std::log(factor) + best / to - best / noise);
        for (const auto j : active) alpha[j] /= factor;
        for (double &entry : Sigma.at) entry *= factor;
        for (const auto m : near) S[m] /= factor, Q[m] /= factor;
        terms.noise = noise = to;
        terms.d = problem.d + factor * (terms.d - problem.d);  // a Laplace prior's part goes with 1/α
    }

    // One Newton step of all log α together, with σ² in tow or held, or a part of it; left undone where it brings less
    // than `tol`. Whether it is made or not, everything is from scratch afterwards.
    void settle(double tol, bool hold_noise) {
        const double before = objective, was = noise;
        const double n = hold_noise ? std::numeric_limits<double>::infinity() : problem.n + 2 * problem.c;
        const Vector at = alpha_inside();
        const Vector change = joint_change(at, mean, Sigma, n, pull(), tol, bend, lower);
        for (const double part : PARTS) {
            if (change.empty()) break;
            for (size_t k = 0; k < at.size(); ++k) alpha[active[k]] = at[k] * std::exp(part * change[k]);
            noise = was;
            refresh();
            if (!hold_noise) rescale();
            if (!(objective < before)) return;
        }
        for (size_t k = 0; k < at.size(); ++k) alpha[active[k]] = at[k];
        noise = was;
        refresh();
    }

    Vector alpha_inside() const {
        Vector inside;
        for (const auto j : active) inside.push_back(alpha[j]);
        return inside;
    }

    // λ/σ²: what a Laplace prior, whose scale is that of the noise, has against a prior variance.
    double pull() const { return problem.rate / noise; }

    // Everything from scratch, for the present α and σ².
    void survey() {
        near.clear();
        refresh();
        feel(problem.n_columns(), [this](size_t k) { return gram[k].data(); }, [](size_t m) { return m; });
        const size_t D = problem.n_columns();
        std::vector<Move> entries;
        for (size_t m = 0; m < D; ++m)
            if (std::isinf(alpha[m])) entries.push_back(entry(m));
        const auto ratio = [this](std::int64_t j) { return S[j] > 0 ? Q[j] * Q[j] / S[j] : 0.0; };
        const auto better = [&ratio](const Move &one, const Move &other) {  // as by_promise in candidates.py
            if (one.gain != other.gain) return one.gain > other.gain;
            const double nearness = ratio(one.j), others = ratio(other.j);
            return nearness > others || (nearness == others && one.j < other.j);
        };
        const size_t count = std::min<size_t>(constants.near, entries.size());
        const size_t ranked = std::min(count + 1, entries.size());
        std::partial_sort(entries.begin(), entries.begin() + ranked, entries.end(), better);
        beyond = ranked > count ? entries[count].gain : 0.0;
        for (size_t k = 0; k < count; ++k) near.push_back(entries[k].j);
        gather_near();
    }

    // The model and those near it from scratch, for the present α and σ².
    void refresh() {
        const size_t M = active.size();
        const double beta = 1 / noise;
        refresh_posterior();
        feel(near.size(), [this](size_t k) { return near_gram.data() + k * near.size(); },
             [this](size_t i) { return near[i]; });
        update_terms();
        constexpr double two_pi = 6.283185307179586476925;
        double fit = -0.5 * problem.n_weighted * std::log(two_pi * noise) - residual / (2 * noise);
        if (problem.flat_intercept) fit += 0.5 * std::log(two_pi * noise / problem.n_weighted);
        double penalty = 0.0, priors = rules::log_hyper_prior(beta, problem.c, problem.d);
        for (size_t k = 0; k < M; ++k) {
            const double a = alpha[active[k]];
            penalty += a * mean[k] * mean[k];
            priors += rules::log_hyper_prior(a, problem.a, problem.b[active[k]]) - 0.5 * pull() / a;
        }
        evidence = fit - 0.5 * penalty - posterior.half_logdet;
        objective = evidence + priors;
    }

    void add(std::int64_t j, double to) {
        const size_t M = active.size();
        const double beta = 1 / noise;
        append_column(j);
        Vector g(M);
        for (size_t k = 0; k < M; ++k) {
            const double near = beta * G(M, k);
            for (size_t i = 0; i < M; ++i) g[i] += Sigma(i, k) * near;
        }
        const double var = 1 / (to + S[j]), weight = var * Q[j];
        Sigma.grow();
        for (size_t k = 0; k < M; ++k) {
            for (size_t i = 0; i < M; ++i) Sigma(i, k) += var * g[i] * g[k];
            Sigma(M, k) = Sigma(k, M) = -var * g[k];
            mean[k] -= weight * g[k];
        }
        Sigma(M, M) = var;
        mean.push_back(weight);
        for (double &each : g) each = -each;
        g.push_back(1.0);
        move_near(g, -var, -weight);
        active.push_back(j);
        alpha[j] = to;
        update_terms();
    }

    void reestimate(size_t place, double to) {
        const double change = to - alpha[active[place]];
        rank_one(place, change / (1 + change * Sigma(place, place)));
        alpha[active[place]] = to;
        update_terms();
    }

    void remove(size_t place) {
        const std::int64_t j = active[place];
        const double s = s_inside(place), q = q_inside(place);
        rank_one(place, 1 / Sigma(place, place));
        Sigma.drop(place);
        G.drop(place);
        mean.erase(mean.begin() + place);
        count_copies(gram[place], j, -1);
        gram.erase(gram.begin() + place);
        active.erase(active.begin() + place);
        near_gram.erase(near_gram.begin() + place * near.size(), near_gram.begin() + (place + 1) * near.size());
        alpha[j] = OUT;
        S[j] = s, Q[j] = q;
        if (std::find(near.begin(), near.end(), j) == near.end()) {
            near.push_back(j);
            gather_near();
        }
        update_terms();
    }

private:
    Vector &mean;
    Square &Sigma;
    Square G;          // the rows of `gram` of the active ones
    Vector near_gram;  // those of the ones near
    Vector prices;
    Indices starting;
    double residual = 0.0;
    bool flat;
    Vector block, felt, explained;  // room for `feel`
    Square bend, lower;             // and for joint steps

    void gather_near() {
        near_gram.clear();
        for (size_t k = 0; k < active.size(); ++k)
            for (const auto m : near) near_gram.push_back(gram[k][m]);
    }

    double total_price(size_t n_kept) {
        while (prices.size() <= n_kept) prices.push_back(problem.total_price(static_cast<std::int64_t>(prices.size())));
        return prices[n_kept];
    }

    // A basis of the start. A copy of one that is in hands over its prior variance: the model stays the same.
    void take_in(std::int64_t j, double to) {
        const Vector &energy = problem.column_energy;
        if (!is_copy(j)) {
            append_column(j);
            active.push_back(j);
            alpha[j] = to;
            return;
        }
        size_t twin = 0;
        double most = -1.0;
        for (size_t k = 0; k < active.size(); ++k) {
            const double cosine = std::abs(gram[k][j]) / std::sqrt(energy[j] * energy[active[k]]);
            if (cosine > most) most = cosine, twin = k;
        }
        double &other = alpha[active[twin]];
        other = 1 / (1 / other + energy[j] / energy[active[twin]] / to);
    }

    void refresh_posterior() {
        Vector projection;
        for (const auto j : active) projection.push_back(problem.projection[j]);
        find_posterior(G, projection, alpha_inside(), 1 / noise, constants.jitter_ladder, posterior);
    }

    // S and Q of candidates from scratch, by their products with each column in the model, over blocks that stay in the
    // cache.
    template <typename Products, typename Which>
    void feel(size_t rows, const Products &products, const Which &which) {
        const size_t M = active.size(), step = 256;
        const int m = static_cast<int>(M);
        const double one = 1.0, beta = 1 / noise;
        if (rows == 0) return;
        block.resize(std::min(step, rows) * M);
        for (size_t from = 0; from < rows; from += step) {
            const size_t count = std::min(step, rows - from);
            const int n = static_cast<int>(count);
            for (size_t k = 0; k < M; ++k) std::copy_n(products(k) + from, count, &block[k * count]);
            felt.assign(count, 0.0), explained.resize(count);
            blas::multiply(count, M, 1.0, block.data(), mean.data(), 0.0, explained.data());
            const double *root = posterior.root.at.data();
            if (M > 0) blas::trmm("R", "L", "T", "N", &n, &m, &one, root, &m, block.data(), &n);
            for (size_t k = 0; k < M; ++k)
                for (size_t i = 0; i < count; ++i) felt[i] += block[i + k * count] * block[i + k * count];
            for (size_t i = 0; i < count; ++i) {
                const std::int64_t j = which(from + i);
                S[j] = beta * problem.column_energy[j] - beta * beta * felt[i];
                Q[j] = beta * (problem.projection[j] - explained[i]);
            }
        }
    }

    // ‖t - Φμ‖² (the expanded square or, where that has lost its digits, from the rows), and what the noise rules ask.
    void update_terms() {
        const size_t M = active.size();
        double gamma_sum = 0.0, d = problem.d;
        residual = problem.energy;
        Vector reached(M);  // Φᵀ Φμ
        blas::multiply(M, M, 1.0, G.at.data(), mean.data(), 0.0, reached.data());
        for (size_t k = 0; k < M; ++k) {
            residual -= mean[k] * (2 * problem.projection[active[k]] - reached[k]);
            gamma_sum += 1 - alpha[active[k]] * Sigma(k, k);
            d += 0.5 * problem.rate / alpha[active[k]];  // how a Laplace prior's part looks to the noise
        }
        if (!(residual > 1e-6 * problem.energy)) residual = problem.residual_by_rows(active, mean);
        terms = {residual, noise, gamma_sum, problem.n, problem.c, d};
    }

    // Σ, μ, S and Q after the precision at this place has moved.
    void rank_one(size_t place, double kappa) {
        const size_t M = active.size();
        const Vector column(Sigma.at.begin() + place * M, Sigma.at.begin() + (place + 1) * M);
        const double weight = mean[place];
        for (size_t k = 0; k < M; ++k) {
            const double pull = kappa * column[k];
            for (size_t i = 0; i < M; ++i) Sigma(i, k) -= pull * column[i];
            mean[k] -= kappa * weight * column[k];
        }
        move_near(column, kappa, kappa * weight);
    }

    // S and Q of those near, by what they have in common with a combination of the columns in the model.
    void move_near(const Vector &combination, double on_S, double on_Q) {
        const size_t M = combination.size();
        Vector felt(near.size());
        blas::multiply(near.size(), M, 1 / noise, near_gram.data(), combination.data(), 0.0, felt.data());
        for (size_t i = 0; i < near.size(); ++i) {
            S[near[i]] += on_S * felt[i] * felt[i];
            Q[near[i]] += on_Q * felt[i];
        }
    }

    void append_column(std::int64_t j) {
        const size_t M = active.size();
        Vector column = problem.gram_column(j, [this] { return expected(); });
        count_copies(column, j, 1);
        G.grow();
        for (size_t k = 0; k < M; ++k) {
            G(k, M) = column[active[k]];
            G(M, k) = gram[k][j];
        }
        G(M, M) = column[j];
        for (const auto m : near) near_gram.push_back(column[m]);
        gram.push_back(std::move(column));
    }

    // Counts every other candidate that is a multiple of φ_j.
    void count_copies(const Vector &column, std::int64_t j, int by) {
        const Vector &energy = problem.column_energy;
        for (size_t m = 0; m < energy.size(); ++m)
            if (std::abs(column[m]) >= constants.copy * std::sqrt(energy[m] * energy[j])) copies[m] += by;
        if (std::abs(column[j]) >= constants.copy * std::sqrt(energy[j] * energy[j])) copies[j] -= by;
    }
};

}  // namespace sequential
