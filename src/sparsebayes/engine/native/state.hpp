// The state of the Gaussian search: engine/state.py, compiled. Posterior of the model, and S and Q of the candidates,
// kept current by rank-one updates while columns come and go. Which action to take is decided in engine/ascent.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "blas.hpp"
#include "posterior.hpp"
#include "problem.hpp"
#include "rules.hpp"
#include "scales.hpp"

namespace gaussian {

using rules::OUT;

struct Move {
    double gain = 0.0, alpha = OUT;
    std::int64_t j = -1;
    double worth = 0.0;  // what the column brings at its own best precision
};

// The best change of every column: core/priors.py, Moves.
struct Moves {
    Vector alpha, gain, worth;
};

// offset + factor × nats of a column: core/prices.py, Marginal.
struct MarginalPrice {
    double out_offset, out_factor, in_offset, in_factor;
};

using Step = std::tuple<double, double, size_t, double, const char *>;  // the fields of Info in engine/loop.py

// Of engine/state.py and the files it imports; they are handed over, never written twice.
struct Constants {
    double copy, lost_digits, min_share_left;
    std::int64_t prefetch;
    Vector jitter_ladder, step_parts;
    scales::Limits step;
};

class State {
public:
    const Problem problem;
    const Constants constants;
    const size_t working_size;  // most candidates of the working set
    Indices active;
    Vector alpha, S, Q;
    Posterior posterior;
    Indices working;            // candidates whose S and Q are current; those of others are of the last survey,
    double outside_gain = 0.0;  // when this was the largest gain of one of them
    std::int64_t age = 0;       // moves since everything was computed from scratch
    double noise, evidence = 0.0, objective = 0.0, residual = 0.0, gamma_sum = 0.0;
    std::vector<int> copies;   // of how many columns in the model each candidate is a multiple
    std::vector<Vector> gram;  // ΦᵀΦ_active, a column of all candidates for each in the model
    const bool one_price;      // whether the price of a column is that of any other
    std::map<size_t, MarginalPrice> known_prices;

    State(Problem problem_, const Constants &constants_, size_t working_size_, const Indices &start,
          const Vector &start_alpha, double noise_)
        : problem(std::move(problem_)),
          constants(constants_),
          working_size(working_size_),
          alpha(problem.n_columns(), OUT),
          S(problem.n_columns()),
          Q(problem.n_columns()),
          noise(noise_),
          copies(problem.n_columns(), 0),
          one_price(std::all_of(problem.nats.begin(), problem.nats.end(),
                                [this](double each) { return each == problem.nats[0]; })),
          mean(posterior.mean),
          Sigma(posterior.Sigma),
          starting(start),
          flat(problem.rate == 0.0 && problem.a == 0.0 &&
               std::none_of(problem.b.begin(), problem.b.end(), [](double rate) { return rate != 0.0; })) {
        for (size_t k = 0; k < start.size(); ++k) include(start[k], start_alpha[k]);
        starting.clear();
        refresh();
    }

    State(const State &) = delete;  // some members are references to others

    double strength() const { return problem.rate / noise; }

    // μᵀAμ
    double penalty() const {
        double sum = 0.0;
        for (size_t k = 0; k < active.size(); ++k) sum += alpha[active[k]] * mean[k] * mean[k];
        return sum;
    }

    // Σ 1/α
    double variance_sum() const {
        double sum = 0.0;
        for (const auto j : active) sum += 1 / alpha[j];
        return sum;
    }

    Vector alpha_inside() const {
        Vector inside;
        inside.reserve(active.size());
        for (const auto j : active) inside.push_back(alpha[j]);
        return inside;
    }

    // Everything from scratch; then the working set is chosen anew. Returns the best change of every column.
    Moves survey(const MarginalPrice &price) {
        working.clear();
        refresh();
        const size_t n = problem.n_columns();
        compute_factors(n, [this](size_t k) { return gram[k].data(); }, [](size_t m) { return m; });
        Moves moves{Vector(n), Vector(n), Vector(n)};
        const auto store = [&moves](const Move &move) {
            moves.alpha[move.j] = move.alpha, moves.gain[move.j] = move.gain, moves.worth[move.j] = move.worth;
        };
        std::vector<Move> entries;
        for (size_t m = 0; m < n; ++m)
            if (std::isinf(alpha[m])) store(entries.emplace_back(entry(m, price)));
        for (size_t place = 0; place < active.size(); ++place) store(change_inside(place, price));
        const auto ratio = [this](std::int64_t j) { return S[j] > 0 ? Q[j] * Q[j] / S[j] : 0.0; };
        // Equal gains (mostly zero) are ranked by q²/s: otherwise the search would depend on the order of columns.
        const auto better = [&ratio](const Move &one, const Move &other) {
            if (one.gain != other.gain) return one.gain > other.gain;
            const double first = ratio(one.j), second = ratio(other.j);
            return first > second || (first == second && one.j < other.j);
        };
        const size_t count = std::min(working_size, entries.size());
        const size_t ranked = std::min(count + 1, entries.size());
        // Their order matters where only the first are kept, or are asked for together.
        if (count < entries.size() || !problem.knows_gram)
            std::partial_sort(entries.begin(), entries.begin() + ranked, entries.end(), better);
        outside_gain = ranked > count ? entries[count].gain : 0.0;
        for (size_t k = 0; k < count; ++k) working.push_back(entries[k].j);
        gather_working();
        return moves;
    }

    // The best change of a single precision among the model and the working set; of equal ones the first.
    Move best(bool may_add, double min_novelty, const MarginalPrice &price) const {
        Move best;
        const auto consider = [&best](const Move &move) {
            if (move.gain > best.gain || (move.gain == best.gain && move.j < best.j)) best = move;
        };
        for (size_t place = 0; place < active.size(); ++place) consider(change_inside(place, price));
        if (!may_add) return best;
        const double least = min_novelty / noise;
        const auto may_enter = [&](std::int64_t j) {
            return std::isinf(alpha[j]) && copies[j] == 0 && S[j] > 0 && S[j] >= least * problem.column_energy[j];
        };
        if (!(flat && one_price && problem.min_alpha == 0.0)) {
            for (const auto j : working)
                if (may_enter(j)) consider(entry(j, price));
            return best;
        }
        double most = 0.0;  // with a flat prior and equal prices the largest q²/s brings most: it alone needs a logarithm
        std::int64_t at = -1;
        for (const auto j : working) {
            const double q = useful(Q[j]);
            if (!(q * q >= rules::BELOW_ONE * most * S[j]) || !may_enter(j)) continue;
            const double ratio = q * q / S[j];
            if (ratio > most || (ratio == most && j < at)) most = ratio, at = j;
        }
        if (at >= 0) consider(entry(at, price));
        return best;
    }

    // Give a column the precision α (∞: take it out). Returns which of the three actions that was.
    const char *move(std::int64_t j, double to) {
        ++age;
        const double was = alpha[j], a = problem.a, b = problem.b[j];
        if (std::isinf(was)) {
            update_factors(j);
            objective += rules::gain(to, S[j], Q[j], strength()) + rules::log_hyper_prior(to, a, b);
            add(j, to);
            return "add";
        }
        const size_t place = place_of(j);
        const double s = s_inside(place), q = q_inside(place);
        objective -= rules::gain(was, s, q, strength()) + rules::log_hyper_prior(was, a, b);
        if (std::isinf(to)) {
            remove(place);
            return "delete";
        }
        objective += rules::gain(to, s, q, strength()) + rules::log_hyper_prior(to, a, b);
        const double change = to - was;
        rank_one(place, change / (1 + change * Sigma(place, place)));
        alpha[j] = to;
        measure();
        return "re-estimate";
    }

    // Up to n best moves in a row; see engine/state.py.
    std::vector<Step> advance(std::int64_t n, double tol, std::int64_t additions, double min_novelty,
                              const std::function<MarginalPrice(size_t)> &price, double noise_floor,
                              bool follows, std::int64_t every, const std::string &due) {
        std::vector<Step> made;
        while (static_cast<std::int64_t>(made.size()) < n) {
            const size_t k = active.size();
            const Move next = best(additions > 0, min_novelty, price(k));
            if (!(next.gain > std::max(tol, outside_gain))) break;
            const double before = objective;
            const char *action = move(next.j, next.alpha);
            additions -= active.size() > k;
            if (follows) rescale(noise_floor);
            made.emplace_back(before, next.gain, active.size(), posterior.jitter, action);
            if (age < every) continue;
            if (due == "joint")
                joint_step(tol, follows ? noise_floor : 0.0);
            else
                set_scales(alpha_inside(), due == "noise" ? next_noise(noise_floor) : noise);
        }
        return made;
    }

    // All precisions of the model, and the noise; everything that depends on them from scratch.
    void set_scales(const Vector &inside, double noise_) {
        assign(inside, noise_);
        refresh();
    }

    // One Newton step of all log α together, or a part of it; see engine/state.py.
    void joint_step(double tol, double noise_floor) {
        const double before = objective, noise_before = noise;
        const Vector inside = alpha_inside();
        Vector slope(inside.size()), curvature(inside.size()), to(inside.size());
        for (size_t k = 0; k < inside.size(); ++k) {
            const double rate = problem.b[active[k]] * inside[k], pull = 0.5 * strength() / inside[k];
            slope[k] = problem.a - rate + pull;
            curvature[k] = rate + pull;
        }
        const double n = noise_floor > 0 ? problem.n + 2 * problem.c : OUT;
        const auto [step, promise] =
            scales::newton_step(inside, mean, Sigma.at.data(), n, slope, curvature, constants.step);
        if (promise > tol) {
            for (const double part : constants.step_parts) {
                for (size_t k = 0; k < inside.size(); ++k) to[k] = inside[k] * std::exp(part * step[k]);
                assign(to, noise_before);
                refresh_model();
                if ((noise_floor > 0 ? rescaled(noise_floor).objective : objective) < before) continue;
                refresh_working();
                if (noise_floor > 0) rescale(noise_floor);
                return;
            }
        }
        set_scales(inside, noise_before);
    }

    // Multiply σ² and all prior variances by one factor, the best: μ stays, Σ grows with the factor, S and Q shrink.
    void rescale(double noise_floor) {
        const Rescaled best = rescaled(noise_floor);
        const double factor = best.noise / noise;
        objective = best.objective;
        for (const auto j : active) alpha[j] /= factor;
        for (double &entry : Sigma.at) entry *= factor;
        for (const auto m : working) S[m] /= factor, Q[m] /= factor;
        noise = best.noise;
    }

    // The objective from scratch; the state stays as it is.
    double fresh_objective() {
        const Posterior posterior_before = posterior;
        const auto before = std::make_tuple(age, evidence, objective, residual, gamma_sum);
        refresh_model();
        const double found = objective;
        posterior = posterior_before;
        std::tie(age, evidence, objective, residual, gamma_sum) = before;
        return found;
    }

    // The model and the working set from scratch, for the present α and σ².
    void refresh() {
        refresh_model();
        refresh_working();
    }

private:
    Vector &mean;
    Square &Sigma;
    Square G;             // the rows of `gram` of the columns in the model
    Vector working_gram;  // those of the working set
    Indices starting;
    bool flat;
    Vector block, square, explained;  // scratch of `compute_factors`

    struct Rescaled {
        double noise, objective;
    };

    // The best common factor of σ² and all prior variances: the noise with it, and the objective there.
    Rescaled rescaled(double noise_floor) const {
        const double best = (2 * problem.d + residual + noise * penalty()) / (2 * problem.c + problem.n);
        const double to = std::max(best, noise_floor);
        return {to, objective - (0.5 * problem.n + problem.c) * (std::log(to / noise) + best / to - best / noise)};
    }

    // σ² by MacKay's rule, kept above the floor: engine/least_squares.py, next_noise.
    double next_noise(double noise_floor) const {
        const double d = problem.d + 0.5 * problem.rate * variance_sum(), left = problem.n - gamma_sum;
        const bool used_up = left < constants.min_share_left * problem.n;  // then by EM
        const double share = used_up ? noise * gamma_sum : 0.0;
        return std::max((2 * d + residual + share) / (2 * problem.c + (used_up ? problem.n : left)), noise_floor);
    }

    void assign(const Vector &inside, double noise_) {
        for (size_t k = 0; k < active.size(); ++k) alpha[active[k]] = inside[k];
        noise = noise_;
    }

    void refresh_model() {
        age = 0;
        Vector projection;
        for (const auto j : active) projection.push_back(problem.projection[j]);
        find_posterior(G, projection, alpha_inside(), 1 / noise, constants.jitter_ladder, posterior);
        measure();
        constexpr double two_pi = 6.283185307179586476925;
        double fit = -0.5 * problem.n_weighted * std::log(two_pi * noise) - residual / (2 * noise);
        if (problem.flat_intercept) fit += 0.5 * std::log(two_pi * noise / problem.n_weighted);
        evidence = fit - 0.5 * penalty() - posterior.half_logdet;
        objective = evidence + rules::log_hyper_prior(1 / noise, problem.c, problem.d) - 0.5 * strength() * variance_sum();
        for (const auto j : active) objective += rules::log_hyper_prior(alpha[j], problem.a, problem.b[j]);
    }

    // S and Q of the working set; the posterior must be from scratch.
    void refresh_working() {
        compute_factors(working.size(), [this](size_t k) { return working_gram.data() + k * working.size(); },
                        [this](size_t i) { return working[i]; });
    }

    size_t place_of(std::int64_t j) const { return std::find(active.begin(), active.end(), j) - active.begin(); }

    // Σ_jj, of which rank-one updates may leave no digit where there is no noise; at least that of a column alone.
    double variance(size_t place) const {
        const std::int64_t j = active[place];
        return std::max(Sigma(place, place), 1 / (alpha[j] + problem.column_energy[j] / noise));
    }

    // s and q of a column in the model by γ/Σ_jj and μ_j/Σ_jj, which do not cancel.
    double s_inside(size_t place) const {
        const double var = variance(place);
        return std::clamp(1 - alpha[active[place]] * var, 0.0, 1.0) / var;
    }
    double q_inside(size_t place) const { return mean[place] / variance(place); }

    // Where weights cannot be negative, data that ask for one say nothing.
    double useful(double q) const { return problem.positive ? std::max(q, 0.0) : q; }

    double candidate(std::int64_t j, double s, double q) const {
        return std::max(rules::candidate(s, q, problem.a, problem.b[j], strength()), problem.min_alpha);
    }

    // What a candidate outside the model would bring, and at which precision.
    Move entry(std::int64_t j, const MarginalPrice &price) const {
        const double q = useful(Q[j]), to = candidate(j, S[j], q);
        const double cost = price.out_offset + price.out_factor * problem.nats[j];
        const double worth = rules::gain(to, S[j], q, strength()), brings = worth - cost;
        return brings > 0 && copies[j] == 0 ? Move{brings, to, j, worth} : Move{0.0, OUT, j, worth};
    }

    // A column is worth what it brings at its own best precision; in the model belongs what is worth its price.
    Move change_inside(size_t place, const MarginalPrice &price) const {
        const std::int64_t j = active[place];
        const double s = s_inside(place), q = useful(q_inside(place)), at = alpha[j], a = problem.a, b = problem.b[j];
        const double to = candidate(j, s, q);
        const double worth = rules::gain(to, s, q, strength()), present = rules::gain(at, s, q, strength());
        const double cost = price.in_offset + price.in_factor * problem.nats[j];
        if (worth > cost)
            return {worth - present + rules::log_hyper_prior(to, a, b) - rules::log_hyper_prior(at, a, b), to, j, worth};
        return {cost - std::min(present, worth), OUT, j, worth};
    }

    // S and Q of a candidate outside the working set, which were those of the last survey.
    void update_factors(std::int64_t j) {
        if (std::find(working.begin(), working.end(), j) != working.end()) return;
        double square = 0.0, explained = 0.0;
        for (size_t k = 0; k < active.size(); ++k) {
            explained += gram[k][j] * mean[k];
            for (size_t i = 0; i < active.size(); ++i) square += gram[i][j] * Sigma(i, k) * gram[k][j];
        }
        S[j] = (problem.column_energy[j] - square / noise) / noise;
        Q[j] = (problem.projection[j] - explained) / noise;
    }

    void add(std::int64_t j, double to) {
        const size_t M = active.size();
        append_column(j);
        Vector g(M);
        for (size_t k = 0; k < M; ++k) {
            const double common = G(M, k) / noise;
            for (size_t i = 0; i < M; ++i) g[i] += Sigma(i, k) * common;
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
        update_working(g, -var, -weight);
        active.push_back(j);
        alpha[j] = to;
        measure();
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
        working_gram.erase(working_gram.begin() + place * working.size(),
                           working_gram.begin() + (place + 1) * working.size());
        alpha[j] = OUT;
        S[j] = s, Q[j] = q;
        if (std::find(working.begin(), working.end(), j) == working.end()) {
            working.push_back(j);
            gather_working();
        }
        measure();
    }

    // Σ, μ, S and Q after the precision at this place has changed.
    void rank_one(size_t place, double kappa) {
        const size_t M = active.size();
        const Vector column(Sigma.at.begin() + place * M, Sigma.at.begin() + (place + 1) * M);
        const double weight = mean[place];
        for (size_t k = 0; k < M; ++k) {
            const double scaled = kappa * column[k];
            for (size_t i = 0; i < M; ++i) Sigma(i, k) -= scaled * column[i];
            mean[k] -= kappa * weight * column[k];
        }
        update_working(column, kappa, kappa * weight);
    }

    // S and Q of the working set, by its products with a combination of the columns in the model.
    void update_working(const Vector &combination, double on_S, double on_Q) {
        Vector common(working.size());
        blas::multiply(working.size(), combination.size(), 1 / noise, working_gram.data(), combination.data(), 0.0,
                       common.data());
        for (size_t i = 0; i < working.size(); ++i) {
            S[working[i]] += on_S * common[i] * common[i];
            Q[working[i]] += on_Q * common[i];
        }
    }

    // S and Q of candidates from scratch, by their products with each column in the model, over blocks that stay in the
    // cache.
    template <typename Products, typename Which>
    void compute_factors(size_t rows, const Products &products, const Which &which) {
        const size_t M = active.size(), step = 256;
        const int m = static_cast<int>(M);
        const double one = 1.0, beta = 1 / noise;
        block.resize(std::min(step, rows) * M);
        for (size_t from = 0; from < rows; from += step) {
            const size_t count = std::min(step, rows - from);
            const int n = static_cast<int>(count);
            for (size_t k = 0; k < M; ++k) std::copy_n(products(k) + from, count, &block[k * count]);
            square.assign(count, 0.0), explained.resize(count);
            blas::multiply(count, M, 1.0, block.data(), mean.data(), 0.0, explained.data());
            if (M > 0) blas::trmm("R", "L", "T", "N", &n, &m, &one, posterior.root.at.data(), &m, block.data(), &n);
            for (size_t k = 0; k < M; ++k)
                for (size_t i = 0; i < count; ++i) square[i] += block[i + k * count] * block[i + k * count];
            for (size_t i = 0; i < count; ++i) {
                const std::int64_t j = which(from + i);
                S[j] = beta * problem.column_energy[j] - beta * beta * square[i];
                Q[j] = beta * (problem.projection[j] - explained[i]);
            }
        }
    }

    // ‖t - Φμ‖² (the expanded square or, where that has lost its digits, from the rows) and Σγ.
    void measure() {
        const size_t M = active.size();
        residual = problem.energy, gamma_sum = 0.0;
        Vector reached(M);  // ΦᵀΦμ
        blas::multiply(M, M, 1.0, G.at.data(), mean.data(), 0.0, reached.data());
        for (size_t k = 0; k < M; ++k) {
            residual -= mean[k] * (2 * problem.projection[active[k]] - reached[k]);
            gamma_sum += 1 - alpha[active[k]] * Sigma(k, k);
        }
        if (!(residual > constants.lost_digits * problem.energy)) residual = problem.residual_by_rows(active, mean);
    }

    void gather_working() {
        working_gram.clear();
        for (size_t k = 0; k < active.size(); ++k)
            for (const auto m : working) working_gram.push_back(gram[k][m]);
    }

    // A column of the start. A copy of one that is in hands over its prior variance: the model stays the same.
    void include(std::int64_t j, double to) {
        const Vector &energy = problem.column_energy;
        if (copies[j] == 0) {
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

    // Columns that will probably be asked for next: the rest of the start, then the best of the working set.
    Indices expected() const {
        if (!starting.empty()) return starting;
        return Indices(working.begin(), working.begin() + std::min<size_t>(constants.prefetch, working.size()));
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
        for (const auto m : working) working_gram.push_back(column[m]);
        gram.push_back(std::move(column));
    }

    // Counts every other candidate that is a multiple of column j.
    void count_copies(const Vector &column, std::int64_t j, int by) {
        const Vector &energy = problem.column_energy;
        const double own = energy[j], limit = constants.copy * constants.copy;
        for (size_t m = 0; m < energy.size(); ++m)
            if (static_cast<std::int64_t>(m) != j && column[m] * column[m] >= limit * energy[m] * own) copies[m] += by;
    }
};

}  // namespace gaussian
