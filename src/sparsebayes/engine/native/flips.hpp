// Weighted tempered Gibbs sampling over sets of columns: the compiled form of engine/flips.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "blas.hpp"
#include "columns.hpp"
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
    double n, steepest, rounding;
    Vector spread;
    bool shares_noise;  // whether all outputs have one noise variance
    bool has_outputs = false;  // whether arrays have an axis for outputs
    size_t n_outputs;   // q, weights, variances and their sums are stored output by output
    bool can_move = false;  // whether any column is neither always in nor never
    size_t last_movable = 0;

    std::vector<char> inside;
    Indices active, picked;
    std::vector<Vector> gram;  // of the columns inside
    Square inner;              // (Φ_SᵀΦ_S + I/c)⁻¹, or M itself
    bool by_rows = false;
    Vector s, q, rest, log_odds, log_in, p, weight, variance, eagerness;
    Vector mobile, tiles;                       // 1 for columns that may move, else 0; sums of tiles of the eagerness
    Vector ratio, explained, row, mean, near;  // memory that every flip uses again
    Vector one_q;  // q of one column, an entry for each output
    double c = 1.0, total = 0.0, log_total = 0.0;
    Sums sums;

    Flips(std::function<Vector(std::int64_t)> gram_row_, const double *rows_, size_t n_rows_, Vector projection_,
          Vector log_prior_, double n_, Vector spread_, bool shares_noise_, double steepest_, double rounding_)
        : gram_row(std::move(gram_row_)), rows(rows_), n_rows(n_rows_), projection(std::move(projection_)),
          log_prior(std::move(log_prior_)), n(n_), steepest(steepest_), rounding(rounding_), spread(std::move(spread_)),
          shares_noise(shares_noise_) {
        const size_t D = log_prior.size();
        n_outputs = projection.size() / std::max<size_t>(D, 1);
        inside.assign(D, 0);
        for (Vector *each : {&log_in, &p, &eagerness, &mobile, &ratio, &explained, &row, &sums.included}) each->assign(D, 0.0);
        for (size_t j = 0; j < D; ++j)
            if (movable(j)) mobile[j] = 1.0, can_move = true, last_movable = j;
        tiles.assign(D / columns::TILE + 1, 0.0);
        for (Vector *each : {&weight, &variance, &sums.first, &sums.second}) each->assign(projection.size(), 0.0);
        for (Vector *each : {&rest, &one_q, &sums.noise}) each->assign(n_outputs, 0.0);
        sums.sizes.assign(D + 1, 0.0);
    }

    size_t size() const { return log_prior.size(); }

    // Probability of every column given the rest, and how eagerly each is flipped.
    void weigh() {
        const size_t D = size(), k = active.size(), last = log_odds.size() - 1;
        for (size_t start = 0; start < D; start += columns::TILE)
            weigh_outside(start, std::min(columns::TILE, D - start), log_odds[std::min(k, last)]);
        const double fewer = log_odds[k > 0 ? k - 1 : 0];
        if (!by_rows) find_means();
        for (size_t i = 0; i < k; ++i) {
            const auto j = active[i];
            const double left = by_rows ? std::max(1 - c * s[j], rounding) : inner(i, i) / c;
            for (size_t o = 0; o < n_outputs; ++o) one_q[o] = by_rows ? q[o * D + j] / left : mean[o * k + i] / inner(i, i);
            weigh_one(j, 1 / left, fewer);
        }
        find_eagerness();
    }

    // A tile of columns as if they were outside; those inside are corrected one by one.
    void weigh_outside(size_t start, size_t length, double prior) {
        const size_t D = size();
        const bool learns_noise = std::isfinite(n), one_noise = learns_noise && shares_noise;
        double *odds = log_in.data() + start, *taken = explained.data() + start, *part = ratio.data() + start;
        columns::find_volume(length, c, n_outputs, prior, s.data() + start, log_prior.data() + start, part, odds);
        double all_rest = 0.0;
        for (size_t o = 0; o < n_outputs; ++o) {
            double *own = variance.data() + o * D + start;
            columns::find_weights(length, part, q.data() + o * D + start, one_noise && o > 0,
                                  weight.data() + o * D + start, taken);
            all_rest += rest[o];
            if (learns_noise && !shares_noise) columns::find_worth(length, n, rest[o], rounding, taken, odds, own);
            if (!learns_noise) columns::add(length, 0.5, taken, odds), std::fill_n(own, length, 1.0);
        }
        double *first = variance.data() + start;
        if (one_noise) {
            columns::find_worth(length, n, all_rest, rounding, taken, odds, first);
            for (size_t o = 1; o < n_outputs; ++o) std::copy_n(first, length, first + o * D);
        }
        for (size_t o = 0; o < n_outputs; ++o)
            for (size_t j = 0; j < length; ++j) first[o * D + j] *= part[j];
        columns::find_odds(length, spread.data() + start, steepest, odds, mobile.data() + start, p.data() + start,
                           eagerness.data() + start);
    }

    // How eagerly each column is flipped, divided by exp(shift), and the logarithm of their sum.
    void find_eagerness() {
        double top = 0.0;
        for (const auto j : active) {
            const double out = std::exp(-std::clamp(log_in[j], -steepest, steepest));  // odds of being out
            p[j] = 1 / (1 + out);
            if (movable(j)) eagerness[j] = 1 + spread[j] + spread[j] * out, top = std::max(top, -log_in[j]);
        }
        total = columns::find_sums(size(), eagerness.data(), tiles.data());
        double shift = std::max(top - steepest, 0.0);
        if (shift > 0 || total >= std::exp(steepest)) {
            for (size_t j = 0; j < size(); ++j)
                if (!inside[j] && movable(j)) shift = std::max(shift, log_in[j] - steepest);
            shift_eagerness(shift);
            total = columns::find_sums(size(), eagerness.data(), tiles.data());
        }
        if (!can_move) total = 1.0;
        log_total = std::log(total) + shift;
    }

    // The same with odds beyond what an exponential can hold.
    void shift_eagerness(double shift) {
        const double stay = std::exp(-shift);
        for (size_t j = 0; j < size(); ++j) {
            if (!movable(j)) continue;
            const double flip = std::exp((inside[j] ? -log_in[j] : log_in[j]) - shift);
            eagerness[j] = (inside[j] ? stay : flip) * (1 + spread[j]) + spread[j] * (inside[j] ? flip : stay);
        }
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
    void find_means() {
        const size_t k = active.size();
        near.resize(k), mean.resize(k * n_outputs);
        for (size_t o = 0; o < n_outputs; ++o) {
            for (size_t i = 0; i < k; ++i) near[i] = projection[o * size() + active[i]];
            blas::multiply(k, k, 1.0, inner.at.data(), near.data(), 0.0, mean.data() + o * k);
        }
    }

    // Take column j in or out, if it may move.
    void toggle(std::int64_t j) {
        if (!movable(j)) return;
        const double factor = by_rows ? follow(j) : inside[j] ? shrink(j) : grow(j);
        inside[j] = !inside[j];
        columns::take_squares(size(), factor, row.data(), s.data());
        for (size_t o = 0; o < n_outputs; ++o) {
            columns::add(size(), -factor * one_q[o], row.data(), q.data() + o * size());
            rest[o] = std::max(rest[o] - factor * one_q[o] * one_q[o], std::numeric_limits<double>::min());
        }
        weigh();
    }

    // All three leave Φᵀ M φ_j of the set before the flip in `row` and q_j in `one_q`; they return c/(1 + c s_j), or
    // -c/(1 - c s_j) if the column leaves.
    double grow(std::int64_t j) {
        const size_t k = active.size();
        Vector own = gram_row(j), target(k);
        near.resize(k);
        for (size_t i = 0; i < k; ++i) target[i] = own[active[i]];
        blas::multiply(k, k, -1.0, inner.at.data(), target.data(), 0.0, near.data());
        for (size_t i = 0; i < k; ++i) target[i] += near[i] / c;
        for (size_t m = 0; m < k; ++m)
            for (size_t i = 0; i < k; ++i) target[i] += near[m] * gram[m][active[i]];
        blas::multiply(k, k, -1.0, inner.at.data(), target.data(), 1.0, near.data());
        row = own;
        columns::add_rows(size(), near.data(), gram, row.data());
        for (size_t o = 0; o < n_outputs; ++o) {
            one_q[o] = projection[o * size() + j];
            for (size_t i = 0; i < k; ++i) one_q[o] += near[i] * projection[o * size() + active[i]];
        }
        const double factor = c / (1 + c * std::max(row[j], 0.0));
        inner.grow();
        near.push_back(1.0);
        for (size_t b = 0; b <= k; ++b) columns::add(k + 1, factor * near[b], near.data(), &inner(0, b));
        active.push_back(j), gram.push_back(std::move(own));
        return factor;
    }

    double shrink(std::int64_t j) {
        const size_t k = active.size(), place = std::find(active.begin(), active.end(), j) - active.begin();
        find_means();
        for (size_t o = 0; o < n_outputs; ++o) one_q[o] = mean[o * k + place] / c;
        near.assign(&inner(0, place), &inner(0, place) + k);
        const double factor = -c * c / near[place];
        for (size_t b = 0; b < k; ++b) columns::add(k, -near[b] / near[place], near.data(), &inner(0, b));
        inner.drop(place);
        for (double &each : near) each /= c;
        std::fill(row.begin(), row.end(), 0.0);
        columns::add_rows(size(), near.data(), gram, row.data());
        active.erase(active.begin() + place), gram.erase(gram.begin() + place);
        return factor;
    }

    // Update M itself.
    double follow(std::int64_t j) {
        Vector column(n_rows), image(n_rows);
        for (size_t i = 0; i < n_rows; ++i) column[i] = rows[i * size() + j];
        blas::multiply(n_rows, n_rows, 1.0, inner.at.data(), column.data(), 0.0, image.data());
        for (size_t o = 0; o < n_outputs; ++o) one_q[o] = q[o * size() + j];
        const double factor = inside[j] ? -c / std::max(1 - c * s[j], rounding) : c / (1 + c * s[j]);
        for (size_t b = 0; b < n_rows; ++b) columns::add(n_rows, -factor * image[b], image.data(), &inner(0, b));
        blas::multiply(size(), n_rows, 1.0, rows, image.data(), 0.0, row.data());
        if (inside[j]) active.erase(std::find(active.begin(), active.end(), j));
        else active.push_back(j);
        return factor;
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
        columns::add(size(), share, p.data(), sums.included.data());
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

    // A column by its eagerness: first its tile, then the place there; the last that may move if rounding leads further.
    std::int64_t choose(double wanted) const {
        size_t tile = 0;
        while (tile + 1 < tiles.size() && wanted >= tiles[tile]) wanted -= tiles[tile++];
        for (size_t j = tile * columns::TILE; j < size(); ++j) {
            if (eagerness[j] == 0.0) continue;
            wanted -= eagerness[j];
            if (wanted < 0) return j;
        }
        return last_movable;
    }
};

}  // namespace gaussian
