// Weighted tempered Gibbs sampling over sets of columns: the compiled form of engine/flips.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "blas.hpp"
#include "problem.hpp"

namespace gaussian {

struct Sums {
    Vector included, first, second, sizes, noise;
    double total = 0.0;
};

struct Flips {
    std::function<Vector(std::int64_t)> gram_row;
    const double *rows;  // Φ row by row
    size_t n_rows;
    Vector projection, log_prior;
    double n, spread, steepest, rounding;
    bool shares_noise;  // whether all outputs have one noise variance
    bool has_outputs = false;  // whether arrays have an axis for outputs
    size_t n_outputs;   // q, weights, variances and their sums are stored output by output
    bool can_move;      // whether any column is neither always in nor never

    std::vector<char> inside;
    Indices active, picked;
    std::vector<Vector> gram;  // of the columns inside
    Square inner;              // (Φ_SᵀΦ_S + I/c)⁻¹, or M itself
    bool by_rows = false;
    Vector s, q, rest, log_odds, log_in, p, weight, variance, eagerness;
    Vector one_q;  // q of one column, an entry for each output
    double c = 1.0, total = 0.0, log_total = 0.0;
    Sums sums;

    Flips(std::function<Vector(std::int64_t)> gram_row_, const double *rows_, size_t n_rows_, Vector projection_,
          Vector log_prior_, double n_, double spread_, bool shares_noise_, double steepest_, double rounding_)
        : gram_row(std::move(gram_row_)), rows(rows_), n_rows(n_rows_), projection(std::move(projection_)),
          log_prior(std::move(log_prior_)), n(n_), spread(spread_), steepest(steepest_), rounding(rounding_),
          shares_noise(shares_noise_) {
        const size_t D = log_prior.size();
        n_outputs = projection.size() / std::max<size_t>(D, 1);
        can_move = std::any_of(log_prior.begin(), log_prior.end(), [](double each) { return std::isfinite(each); });
        inside.assign(D, 0);
        for (Vector *each : {&log_in, &p, &eagerness, &sums.included}) each->assign(D, 0.0);
        for (Vector *each : {&weight, &variance, &sums.first, &sums.second}) each->assign(projection.size(), 0.0);
        for (Vector *each : {&rest, &one_q, &sums.noise}) each->assign(n_outputs, 0.0);
        sums.sizes.assign(D + 1, 0.0);
    }

    size_t size() const { return log_prior.size(); }

    // Probability of every column given the rest, and how eagerly each is flipped.
    void weigh() {
        const size_t D = size(), k = active.size(), last = log_odds.size() - 1;
        const double more = log_odds[std::min(k, last)], fewer = log_odds[k > 0 ? k - 1 : 0];
        for (size_t j = 0; j < D; ++j) {
            if (inside[j]) continue;
            for (size_t o = 0; o < n_outputs; ++o) one_q[o] = q[o * D + j];
            weigh_one(j, 1 + c * s[j], more);
        }
        const Vector mean = by_rows ? Vector() : means();
        for (size_t i = 0; i < k; ++i) {
            const auto j = active[i];
            const double left = by_rows ? std::max(1 - c * s[j], rounding) : inner(i, i) / c;
            for (size_t o = 0; o < n_outputs; ++o) one_q[o] = by_rows ? q[o * D + j] / left : mean[o * k + i] / inner(i, i);
            weigh_one(j, 1 / left, fewer);
        }
        find_eagerness();
    }

    // How eagerly each column is flipped, divided by exp(shift), and the logarithm of their sum.
    void find_eagerness() {
        const size_t D = size();
        double top = 0.0;
        for (size_t j = 0; j < D; ++j)
            if (movable(j)) top = std::max(top, inside[j] ? -log_in[j] : log_in[j]);
        const double shift = std::max(top - steepest, 0.0), stay = std::exp(-shift);
        total = can_move ? 0.0 : 1.0;
        for (size_t j = 0; j < D; ++j) {
            const double out = std::exp(-std::clamp(log_in[j], -steepest, steepest));  // odds of being out
            p[j] = 1 / (1 + out);
            if (!movable(j)) continue;
            if (inside[j])
                eagerness[j] = stay * (1 + spread) + spread * (shift > 0 ? std::exp(-log_in[j] - shift) : out);
            else
                eagerness[j] = spread * stay + (1 + spread) * (shift > 0 ? std::exp(log_in[j] - shift) : 1 / out);
            total += eagerness[j];
        }
        log_total = std::log(total) + shift;
    }

    bool movable(size_t j) const { return std::isfinite(log_prior[j]); }

    // `novelty` is 1 + c s, and `one_q` is q, as the rest of the set sees them.
    void weigh_one(size_t j, double novelty, double prior) {
        const double ratio = c / novelty;
        double worth = 0.0, all_explained = 0.0, all_without = 0.0;
        for (size_t o = 0; o < n_outputs; ++o) {
            const double explained = ratio * one_q[o] * one_q[o], without = rest[o] + (inside[j] ? explained : 0.0);
            weight[o * size() + j] = ratio * one_q[o];
            all_explained += explained, all_without += without;
            if (shares_noise) continue;
            const auto [brings, noise] = worth_of(explained, without);
            worth += brings, variance[o * size() + j] = noise * ratio;
        }
        if (shares_noise) {
            const auto [brings, noise] = worth_of(all_explained, all_without);
            worth = brings;
            for (size_t o = 0; o < n_outputs; ++o) variance[o * size() + j] = noise * ratio;
        }
        log_in[j] = worth - 0.5 * n_outputs * std::log(novelty) + prior + log_prior[j];
    }

    // What a column brings that takes `explained` from ρ, and the noise variance then.
    std::pair<double, double> worth_of(double explained, double without) const {
        explained = std::min(explained, (1 - rounding) * without);
        if (!std::isfinite(n)) return {0.5 * explained, 1.0};
        return {-0.5 * n * std::log1p(-explained / without), (without - explained) / std::max(n - 2, 1.0)};
    }

    // Posterior mean of the weights inside, output by output.
    Vector means() const {
        const size_t k = active.size();
        Vector target(k), mean(k * n_outputs);
        for (size_t o = 0; o < n_outputs; ++o) {
            for (size_t i = 0; i < k; ++i) target[i] = projection[o * size() + active[i]];
            blas::multiply(k, k, 1.0, inner.at.data(), target.data(), 0.0, mean.data() + o * k);
        }
        return mean;
    }

    // Take column j in or out, if it may move.
    void toggle(std::int64_t j) {
        if (!std::isfinite(log_prior[j])) return;
        double factor;
        Vector row;
        for (size_t o = 0; o < n_outputs; ++o) one_q[o] = q[o * size() + j];
        if (inside[j]) {
            const size_t place = std::find(active.begin(), active.end(), j) - active.begin();
            if (by_rows) {
                factor = -c / std::max(1 - c * s[j], rounding);
            } else {
                const Vector mean = means();
                for (size_t o = 0; o < n_outputs; ++o) one_q[o] = mean[o * active.size() + place] / c;
                factor = -c * c / inner(place, place);
            }
            row = shrink(j, place, factor);
        } else {
            factor = c / (1 + c * s[j]);
            row = grow(j, factor);
        }
        inside[j] = !inside[j];
        for (size_t m = 0; m < size(); ++m) s[m] = std::max(s[m] - factor * row[m] * row[m], 0.0);
        for (size_t o = 0; o < n_outputs; ++o) {
            double *own = q.data() + o * size();
            for (size_t m = 0; m < size(); ++m) own[m] -= factor * one_q[o] * row[m];
            rest[o] = std::max(rest[o] - factor * one_q[o] * one_q[o], std::numeric_limits<double>::min());
        }
        weigh();
    }

    Vector grow(std::int64_t j, double factor) {
        if (by_rows) {
            active.push_back(j);
            return follow(j, factor);
        }
        const size_t k = active.size();
        Vector own = gram_row(j), row = own, target(k), near(k);
        for (size_t i = 0; i < k; ++i) target[i] = own[active[i]];
        blas::multiply(k, k, 1.0, inner.at.data(), target.data(), 0.0, near.data());
        for (size_t i = 0; i < k; ++i) subtract(near[i], gram[i], row);
        inner.grow();
        near.push_back(-1.0);
        for (size_t b = 0; b <= k; ++b)
            for (size_t a = 0; a <= k; ++a) inner(a, b) += factor * near[a] * near[b];
        active.push_back(j), gram.push_back(std::move(own));
        return row;
    }

    Vector shrink(std::int64_t j, size_t place, double factor) {
        active.erase(active.begin() + place);
        if (by_rows) return follow(j, factor);
        const size_t k = active.size() + 1;
        const Vector own(&inner(0, place), &inner(0, place) + k);
        Vector row(size(), 0.0);
        for (size_t i = 0; i < k; ++i) subtract(-own[i] / c, gram[i], row);
        for (size_t b = 0; b < k; ++b)
            for (size_t a = 0; a < k; ++a) inner(a, b) -= own[a] * own[b] / own[place];
        inner.drop(place);
        gram.erase(gram.begin() + place);
        return row;
    }

    static void subtract(double factor, const Vector &from, Vector &row) {
        for (size_t m = 0; m < row.size(); ++m) row[m] -= factor * from[m];
    }

    // Update M itself; returns Φᵀ M φ_j.
    Vector follow(std::int64_t j, double factor) {
        Vector column(n_rows), image(n_rows), row(size());
        for (size_t i = 0; i < n_rows; ++i) column[i] = rows[i * size() + j];
        blas::multiply(n_rows, n_rows, 1.0, inner.at.data(), column.data(), 0.0, image.data());
        for (size_t b = 0; b < n_rows; ++b)
            for (size_t a = 0; a < n_rows; ++a) inner(a, b) -= factor * image[a] * image[b];
        blas::multiply(size(), n_rows, 1.0, rows, image.data(), 0.0, row.data());
        return row;
    }

    double run(const Vector &choices, const Vector &picks) {
        const double before = sums.total;
        for (size_t step = 0; step < choices.size(); ++step) {
            toggle(choose(choices[step] * total));
            const double share = std::exp(-log_total);
            add(share);
            if (picks[step] * (sums.total - before) <= share) picked = active;
        }
        return sums.total - before;
    }

    void walk(const Vector &choices, const Vector &tests) {
        for (size_t step = 0; step < choices.size(); ++step) {
            const double before = log_total;
            const std::int64_t j = choose(choices[step] * total);
            toggle(j);
            if (std::log(tests[step]) > before - log_total) toggle(j);
            add(1.0);
        }
    }

    void add(double share) {
        for (size_t j = 0; j < size(); ++j) sums.included[j] += share * p[j];
        for (size_t o = 0; o < n_outputs; ++o) {
            for (const auto j : active) {
                const size_t at = o * size() + j;
                sums.first[at] += share * weight[at];
                sums.second[at] += share * (weight[at] * weight[at] + variance[at]);
            }
            sums.noise[o] += share * rest[o];
        }
        sums.sizes[active.size()] += share, sums.total += share;
    }

    std::int64_t choose(double wanted) const {
        size_t found = 0;
        for (size_t j = 0; j < size(); ++j) {
            if (eagerness[j] == 0.0) continue;
            found = j;
            wanted -= eagerness[j];
            if (wanted < 0) break;
        }
        return found;
    }
};

}  // namespace gaussian
