// Loops over all columns of a chain's state (flips.hpp): every column as if it were outside the set.
#pragma once

#include <algorithm>
#include <cstddef>

#include "elementary.hpp"

namespace columns {

using std::size_t;

constexpr size_t TILE = 512;  // numbers of which a few arrays fit into the fastest memory

// ratio = c/(1 + c s), and what the volume takes from the log odds: ½ log(1 + c s) for each of `outputs`.
FOR_WIDE_REGISTERS
static void find_volume(size_t D, double c, double outputs, double prior, const double *s, const double *log_prior,
                        double *ratio, double *log_in) {
    for (size_t j = 0; j < D; ++j) {
        const double novelty = 1 + c * s[j];
        ratio[j] = c / novelty;
        log_in[j] = prior + log_prior[j] - 0.5 * outputs * elementary::log(novelty);
    }
}

// weight = ratio q; returns in `explained` what the column takes from ρ, added to what is there if `adds`.
FOR_WIDE_REGISTERS
static void find_weights(size_t D, const double *ratio, const double *q, bool adds, double *weight,
                         double *explained) {
    for (size_t j = 0; j < D; ++j) {
        weight[j] = ratio[j] * q[j];
        explained[j] = weight[j] * q[j] + (adds ? explained[j] : 0.0);
    }
}

// What each column brings under a noise variance that is integrated out, and the noise variance if it is in.
FOR_WIDE_REGISTERS
static void find_worth(size_t D, double n, double rest, double rounding, const double *explained, double *log_in,
                       double *noise) {
    const double most = (1 - rounding) * rest, share = 1 / rest, per_freedom = 1 / std::max(n - 2, 1.0);
    for (size_t j = 0; j < D; ++j) {
        const double taken = explained[j] < most ? explained[j] : most;
        log_in[j] -= 0.5 * n * elementary::log(1 - taken * share);
        noise[j] = (rest - taken) * per_freedom;
    }
}

// Probability of every column, and how eagerly it enters; `movable` is 1 or 0.
FOR_WIDE_REGISTERS
static void find_odds(size_t D, const double *spread, double steepest, const double *log_in, const double *movable, double *p,
                      double *eagerness) {
    for (size_t j = 0; j < D; ++j) {
        const double above = log_in[j] > -steepest ? log_in[j] : -steepest;
        const double odds = elementary::exp(above < steepest ? above : steepest);
        p[j] = odds / (1 + odds);
        eagerness[j] = movable[j] * (spread[j] + (1 + spread[j]) * odds);
    }
}

// s ← max(s - factor row², 0).
FOR_WIDE_REGISTERS
static void take_squares(size_t D, double factor, const double *row, double *s) {
    for (size_t j = 0; j < D; ++j) {
        const double left = s[j] - factor * row[j] * row[j];
        s[j] = left > 0.0 ? left : 0.0;
    }
}

// to ← to + factor from.
FOR_WIDE_REGISTERS
static void add(size_t D, double factor, const double *from, double *to) {
    for (size_t j = 0; j < D; ++j) to[j] += factor * from[j];
}

// row ← row + Σ factor_i rows_i, by tiles, so that `row` is read once.
template <typename Rows>
void add_rows(size_t D, const double *factors, const Rows &rows, double *row) {
    for (size_t start = 0; start < D; start += TILE)
        for (size_t i = 0; i < rows.size(); ++i)
            add(std::min(TILE, D - start), factors[i], rows[i].data() + start, row + start);
}

// Sums of tiles; returns the sum of all.
static double find_sums(size_t D, const double *values, double *tiles) {
    double total = 0.0;
    for (size_t start = 0, tile = 0; start < D; start += TILE, ++tile) {
        double parts[8] = {};
        const size_t stop = std::min(start + TILE, D);
        size_t j = start;
        for (; j + 8 <= stop; j += 8)
            for (size_t k = 0; k < 8; ++k) parts[k] += values[j + k];
        for (; j < stop; ++j) parts[0] += values[j];
        tiles[tile] = 0.0;
        for (const double part : parts) tiles[tile] += part;
        total += tiles[tile];
    }
    return total;
}

}  // namespace columns
