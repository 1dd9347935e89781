// Weighted tempered Gibbs sampling over sets of columns: the compiled form of engine/flips.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "blas.hpp"
#include "problem.hpp"

namespace gaussian {

struct Sums {
    Vector included, first, second, sizes;
    double noise = 0.0, total = 0.0;
};

struct Flips {
    std::function<Vector(std::int64_t)> gram_row;
    const double *rows;  // Φ row by row
    size_t n_rows;
    Vector projection, log_prior;
    double n, spread, steepest, rounding;
    bool can_move;  // whether any column is neither always in nor never

    std::vector<char> inside;
    Indices active, picked;
    std::vector<Vector> gram;  // of the columns inside
    Square inner;              // (Φ_SᵀΦ_S + I/c)⁻¹, or M itself
    bool by_rows = false;
    Vector s, q, log_odds, log_in, p, weight, variance, eagerness;
    double rest = 0.0, c = 1.0, total = 0.0, log_total = 0.0;
    Sums sums;

    Flips(std::function<Vector(std::int64_t)> gram_row_, const double *rows_, size_t n_rows_, Vector projection_,
          Vector log_prior_, double n_, double spread_, double steepest_, double rounding_)
        : gram_row(std::move(gram_row_)), rows(rows_), n_rows(n_rows_), projection(std::move(projection_)),
          log_prior(std::move(log_prior_)), n(n_), spread(spread_), steepest(steepest_), rounding(rounding_) {
        const size_t D = log_prior.size();
        can_move = std::any_of(log_prior.begin(), log_prior.end(), [](double each) { return std::isfinite(each); });
        inside.assign(D, 0);
        for (Vector *each : {&log_in, &p, &weight, &variance, &eagerness, &sums.included, &sums.first, &sums.second})
            each->assign(D, 0.0);
        sums.sizes.assign(D + 1, 0.0);
    }

    size_t size() const { return log_prior.size(); }

    // Probability of every column given the rest, and how eagerly each is flipped.
    void weigh() {
        const size_t D = size(), k = active.size(), last = log_odds.size() - 1;
        const double more = log_odds[std::min(k, last)], fewer = log_odds[k > 0 ? k - 1 : 0];
        for (size_t j = 0; j < D; ++j)
            if (!inside[j]) weigh_one(j, 1 + c * s[j], q[j], more);
        const Vector mean = by_rows ? Vector() : means();
        for (size_t i = 0; i < k; ++i) {
            const auto j = active[i];
            const double left = by_rows ? std::max(1 - c * s[j], rounding) : inner(i, i) / c;
            weigh_one(j, 1 / left, by_rows ? q[j] / left : mean[i] / inner(i, i), fewer);
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

    // `novelty` is 1 + c s and `q` is q as the rest of the set sees them.
    void weigh_one(size_t j, double novelty, double q_outside, double prior) {
        double explained = c * q_outside * q_outside / novelty;
        const double without = rest + (inside[j] ? explained : 0.0);
        explained = std::min(explained, (1 - rounding) * without);
        const bool learns_noise = std::isfinite(n);
        const double worth = learns_noise ? -0.5 * n * std::log1p(-explained / without) : 0.5 * explained;
        log_in[j] = worth - 0.5 * std::log(novelty) + prior + log_prior[j];
        weight[j] = c * q_outside / novelty;
        variance[j] = (learns_noise ? (without - explained) / std::max(n - 2, 1.0) : 1.0) * c / novelty;
    }

    // Posterior mean of the weights inside.
    Vector means() const {
        const size_t k = active.size();
        Vector target(k), mean(k);
        for (size_t i = 0; i < k; ++i) target[i] = projection[active[i]];
        blas::multiply(k, k, 1.0, inner.at.data(), target.data(), 0.0, mean.data());
        return mean;
    }

    // Take column j in or out, if it may move.
    void toggle(std::int64_t j) {
        if (!std::isfinite(log_prior[j])) return;
        double factor, own_q;
        Vector row;
        if (inside[j]) {
            const size_t place = std::find(active.begin(), active.end(), j) - active.begin();
            if (by_rows) {
                const double left = std::max(1 - c * s[j], rounding);
                factor = -c / left, own_q = q[j];
            } else {
                factor = -c * c / inner(place, place), own_q = means()[place] / c;
            }
            row = shrink(j, place, factor);
        } else {
            factor = c / (1 + c * s[j]), own_q = q[j];
            row = grow(j, factor);
        }
        inside[j] = !inside[j];
        for (size_t m = 0; m < size(); ++m) {
            s[m] = std::max(s[m] - factor * row[m] * row[m], 0.0);
            q[m] -= factor * own_q * row[m];
        }
        rest = std::max(rest - factor * own_q * own_q, std::numeric_limits<double>::min());
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
        for (const auto j : active) {
            sums.first[j] += share * weight[j];
            sums.second[j] += share * (weight[j] * weight[j] + variance[j]);
        }
        sums.sizes[active.size()] += share, sums.noise += share * rest, sums.total += share;
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
