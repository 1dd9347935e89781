// μ, Σ of the model and S, Q of every candidate, kept current while bases come and go: the state of sequential.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "_blas.hpp"
#include "_joint.hpp"
#include "_posterior.hpp"
#include "_problem.hpp"
#include "_rules.hpp"

namespace sequential {

using rules::OUT;

constexpr double LOOSE = 1.05;  // S is computed for all candidates when the noise has moved by this factor,
constexpr int STALE = 20;       // or at this refresh

class Candidates {
public:
    const Problem problem;
    const Constants constants;
    Indices active;
    Vector alpha, S, Q, mean;
    Square Sigma;
    double noise, evidence = 0.0, objective = 0.0, jitter = 0.0;

    Candidates(Problem problem_, Constants constants_, const Indices &start, const Vector &start_alpha, double noise_)
        : problem(std::move(problem_)),
          constants(std::move(constants_)),
          alpha(problem.n_columns(), OUT),
          S(problem.n_columns()),
          Q(problem.n_columns()),
          noise(noise_),
          felt(problem.n_columns()),
          copies(problem.n_columns(), 0),
          starting(start),
          settled(problem.n_columns(), 1),
          flat(problem.rate == 0.0 && problem.a == 0.0 &&
               std::none_of(problem.b.begin(), problem.b.end(), [](double rate) { return rate != 0.0; })) {
        for (size_t k = 0; k < start.size(); ++k) take_in(start[k], start_alpha[k]);
        starting.clear();
        first_noise = OUT;
        refresh();
    }

    // The columns that will probably be asked for next: the rest of the start, then the most promising candidates.
    Indices expected() const {
        if (!starting.empty()) return starting;
        const size_t D = problem.n_columns(), count = std::min<size_t>(constants.prefetch, D);
        Vector promise(D);
        for (size_t m = 0; m < D; ++m) promise[m] = Q[m] * Q[m] / std::max(S[m], rules::TINY);
        Indices order(D);
        std::iota(order.begin(), order.end(), 0);
        std::partial_sort(order.begin(), order.begin() + count, order.end(),
                          [&](std::int64_t i, std::int64_t k) { return promise[i] > promise[k]; });
        order.resize(count);
        return order;
    }

    // Whether candidates are told apart by q²/s alone.
    bool is_flat() const { return flat; }

    // S of a candidate, of which S may hold only a lower bound.
    double settle_S(std::int64_t j) {
        if (!settled[j]) {
            const size_t M = active.size(), D = problem.n_columns();
            double explained = 0.0;
            for (size_t k = 0; k < M; ++k) {
                double felt_k = 0.0;
                for (size_t i = 0; i < M; ++i) felt_k += Sigma(i, k) * gram[j + i * D];
                explained += felt_k * gram[j + k * D];
            }
            S[j] = (problem.column_energy[j] - explained / noise) / noise;
            settled[j] = 1;
        }
        return S[j];
    }

    bool is_copy(std::int64_t j) const { return copies[j] > 0; }

    // s and q of the basis at this place in the model, by γ/Σ_jj and μ_j/Σ_jj, which do not cancel.
    double s_inside(size_t place) const {
        const double var = Sigma(place, place);
        return std::clamp(1 - alpha[active[place]] * var, 0.0, 1.0) / var;
    }
    double q_inside(size_t place) const { return mean[place] / Sigma(place, place); }

    // What one basis more would cost, and what one of those inside does.
    double price_outside() { return total_price(active.size() + 1) - total_price(active.size()); }
    double price_inside() { return active.empty() ? 0.0 : total_price(active.size()) - total_price(active.size() - 1); }

    // Nats to be had from the noise variance; none when it would go below its floor.
    double noise_gain() const {
        if (noise <= constants.noise_floor && terms.mackay() <= constants.noise_floor) return 0.0;
        return terms.gain();
    }

    void update_noise() {
        noise = std::max(terms.mackay(), constants.noise_floor);
        refresh();
    }

    // Whether σ² and all prior variances can be multiplied by one factor without a word from a prior or a price.
    bool is_scale_free() const { return flat && problem.price == 0.0; }

    // The best such factor, in closed form: μ stays, Σ grows with it, S and Q shrink.
    void rescale() {
        double penalty = 0.0;
        for (size_t k = 0; k < active.size(); ++k) penalty += alpha[active[k]] * mean[k] * mean[k];
        const double best = terms.scaled(penalty), to = std::max(best, constants.noise_floor), factor = to / noise;
        objective -= (0.5 * problem.n + problem.c) * (std::log(factor) + best / to - best / noise);
        for (const auto j : active) alpha[j] /= factor;
        for (double &entry : Sigma.at) entry *= factor;
        for (Vector *each : {&S, &Q})
            for (double &entry : *each) entry /= factor;
        noise_of_S *= factor, first_noise *= factor;
        terms.noise = noise = to;
    }

    // One Newton step of all log α together, with σ² in tow; left undone where it brings less than `tol`. Whether it is
    // made or not, everything is from scratch afterwards.
    void settle(double tol) {
        const double before = objective, was = noise;
        const Vector at = alpha_inside(), change = joint_change(at, mean, Sigma, problem.n + 2 * problem.c, tol);
        if (change.empty()) return refresh();
        for (size_t k = 0; k < at.size(); ++k) alpha[active[k]] = at[k] * std::exp(change[k]);
        // C grows at most like the prior variance that grows most: to the bounds of S as if the noise had grown so.
        const double grown = std::exp(std::min(*std::min_element(change.begin(), change.end()), 0.0));
        noise_of_S *= grown, first_noise *= grown;
        refresh();
        rescale();
        if (!(objective < before)) return;
        for (size_t k = 0; k < at.size(); ++k) alpha[active[k]] = at[k];
        noise = was;
        first_noise = OUT;
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
    void refresh() {
        const size_t M = active.size(), D = problem.n_columns();
        const double beta = 1 / noise;
        const double half_logdet = refresh_posterior();
        if (is_flat() && drift() < LOOSE && ++age < STALE)
            loosen_S();
        else
            refresh_S();
        blas::multiply(D, M, -beta, gram.data(), mean.data(), 0.0, Q.data());
        for (size_t m = 0; m < D; ++m) Q[m] += beta * problem.projection[m];
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
        evidence = fit - 0.5 * penalty - half_logdet;
        objective = evidence + priors;
    }

    void add(std::int64_t j, double to) {
        const size_t M = active.size(), D = problem.n_columns();
        const double beta = 1 / noise;
        append_column(j);
        Vector g(M);
        for (size_t k = 0; k < M; ++k) {
            const double near = beta * G(M, k);
            for (size_t i = 0; i < M; ++i) g[i] += Sigma(i, k) * near;
        }
        // φ_mᵀ B e_j for every candidate m
        std::copy_n(&gram[M * D], D, felt.data());
        blas::multiply(D, M, -beta, gram.data(), g.data(), beta, felt.data());
        const double var = 1 / (to + S[j]), weight = var * Q[j];
        Sigma.grow();
        for (size_t k = 0; k < M; ++k) {
            for (size_t i = 0; i < M; ++i) Sigma(i, k) += var * g[i] * g[k];
            Sigma(M, k) = Sigma(k, M) = -var * g[k];
            mean[k] -= weight * g[k];
        }
        Sigma(M, M) = var;
        mean.push_back(weight);
        feel(-var, -weight);
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
        const size_t D = problem.n_columns();
        const std::int64_t j = active[place];
        rank_one(place, 1 / Sigma(place, place));
        Sigma.drop(place);
        G.drop(place);
        mean.erase(mean.begin() + place);
        count_copies(&gram[place * D], j, -1);
        gram.erase(gram.begin() + place * D, gram.begin() + (place + 1) * D);
        active.erase(active.begin() + place);
        alpha[j] = OUT;
        update_terms();
    }

private:
    Vector gram;  // ΦᵀΦ_active, all candidates × active
    Square G;     // its rows of the active ones
    Square root;  // lower triangular, Σ = rootᵀ root
    Vector felt, block, prices;
    std::vector<int> copies;
    Indices starting;
    rules::NoiseTerms terms{};
    double residual = 0.0, noise_of_S = 0.0, first_noise = 0.0;
    std::vector<char> settled;
    int age = 0;
    bool flat;

    double total_price(size_t n_kept) {
        while (prices.size() <= n_kept) prices.push_back(problem.total_price(static_cast<std::int64_t>(prices.size())));
        return prices[n_kept];
    }

    // A basis of the start. A copy of one that is in hands over its prior variance: the model stays the same.
    void take_in(std::int64_t j, double to) {
        const size_t D = problem.n_columns();
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
            const double cosine = std::abs(gram[j + k * D]) / std::sqrt(energy[j] * energy[active[k]]);
            if (cosine > most) most = cosine, twin = k;
        }
        double &other = alpha[active[twin]];
        other = 1 / (1 / other + energy[j] / energy[active[twin]] / to);
    }

    // μ, Σ and its root; returns ½ log|I + A^-½ ΦᵀBΦ A^-½|.
    double refresh_posterior() {
        Vector projection;
        for (const auto j : active) projection.push_back(problem.projection[j]);
        Posterior found = posterior(G, projection, alpha_inside(), 1 / noise, constants.jitter_ladder);
        mean = std::move(found.mean), Sigma = std::move(found.Sigma), root = std::move(found.root);
        jitter = found.jitter;
        return found.half_logdet;
    }

    // felt ← ‖root Φ_activeᵀφ_m‖² for every candidate m, over blocks of candidates that stay in the cache.
    void row_squares() {
        const size_t M = active.size(), D = problem.n_columns(), step = 256;
        const int m = static_cast<int>(M);
        const double one = 1.0;
        std::fill(felt.begin(), felt.end(), 0.0);
        block.resize(step * M);
        for (size_t from = 0; M > 0 && from < D; from += step) {
            const size_t rows = std::min(step, D - from);
            const int n = static_cast<int>(rows);
            for (size_t k = 0; k < M; ++k) std::copy_n(&gram[from + k * D], rows, &block[k * rows]);
            blas::trmm("R", "L", "T", "N", &n, &m, &one, root.at.data(), &m, block.data(), &n);
            for (size_t k = 0; k < M; ++k)
                for (size_t i = 0; i < rows; ++i) felt[from + i] += block[i + k * rows] * block[i + k * rows];
        }
    }

    void refresh_S() {
        const double beta = 1 / noise;
        row_squares();
        for (size_t m = 0; m < S.size(); ++m) S[m] = beta * problem.column_energy[m] - beta * beta * felt[m];
        std::fill(settled.begin(), settled.end(), 1);
        noise_of_S = first_noise = noise;
        age = 0;
    }

    // How far the noise has gone since S was computed for all candidates.
    double drift() const { return std::max(noise / first_noise, first_noise / noise); }

    // S from scratch is most of the work of a refresh, and hardly moves with the noise: C = σ²I + ΦA⁻¹Φᵀ falls at most
    // like σ², so φᵀC⁻¹φ does not fall as σ² falls, and falls at most like 1/σ² as σ² grows. Most candidates are ruled
    // out by that lower bound of S, which is an upper bound of q²/s; the others are settled when they are looked at.
    void loosen_S() {
        const double at_least = std::min(noise_of_S / noise, 1.0);
        for (double &s : S) s *= at_least;
        std::fill(settled.begin(), settled.end(), 0);
        noise_of_S = noise;
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
        blas::multiply(problem.n_columns(), M, 1 / noise, gram.data(), column.data(), 0.0, felt.data());
        for (size_t k = 0; k < M; ++k) {
            const double pull = kappa * column[k];
            for (size_t i = 0; i < M; ++i) Sigma(i, k) -= pull * column[i];
            mean[k] -= kappa * weight * column[k];
        }
        feel(kappa, kappa * weight);
    }

    void feel(double on_S, double on_Q) {
        for (size_t m = 0; m < felt.size(); ++m) {
            S[m] += on_S * felt[m] * felt[m];
            Q[m] += on_Q * felt[m];
        }
    }

    void append_column(std::int64_t j) {
        const size_t M = active.size(), D = problem.n_columns();
        gram.resize((M + 1) * D);
        problem.gram_column(j, [this] { return expected(); }, &gram[M * D]);
        count_copies(&gram[M * D], j, 1);
        G.grow();
        for (size_t k = 0; k < M; ++k) {
            G(k, M) = gram[active[k] + M * D];
            G(M, k) = gram[j + k * D];
        }
        G(M, M) = gram[j + M * D];
    }

    // Counts every other candidate that is a multiple of φ_j.
    void count_copies(const double *column, std::int64_t j, int by) {
        const Vector &energy = problem.column_energy;
        for (size_t m = 0; m < energy.size(); ++m)
            if (std::abs(column[m]) >= constants.copy * std::sqrt(energy[m] * energy[j])) copies[m] += by;
        if (std::abs(column[j]) >= constants.copy * std::sqrt(energy[j] * energy[j])) copies[j] -= by;
    }
};

}  // namespace sequential
