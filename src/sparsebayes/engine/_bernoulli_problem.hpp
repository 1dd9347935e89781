// Rows of a two-class problem, the columns of a model, and the local Gaussian views of core/sites.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "_problem.hpp"

namespace bernoulli {

using sequential::Square;
using sequential::Vector;
using std::size_t;

// What engine/settling.py says of the same names.
struct Constants {
    std::int64_t settling, halvings;
    double longest, slowest, near, longest_leap, rounding, least_curvature, least_gamma;
    Vector jitter_ladder;
};

// engine/bernoulli.py, as far as settling asks.
struct Problem {
    Vector t, weight;
    double a, least_alpha, base_intercept;
    bool flat_intercept;
    Constants constants;

    size_t n_rows() const { return t.size(); }
};

// Φ of a model, column by column; a flat intercept is a last column, of ones.
struct Design {
    Vector at;
    size_t rows, columns;

    const double *column(size_t k) const { return &at[k * rows]; }

    void drop(size_t k) {
        at.erase(at.begin() + k * rows, at.begin() + (k + 1) * rows);
        --columns;
    }
};

// b, h and c of every row.
struct Sites {
    Vector b, h, c;

    double value(const Vector &eta) const {
        double sum = 0.0;
        for (size_t n = 0; n < eta.size(); ++n) sum += (h[n] - 0.5 * b[n] * eta[n]) * eta[n] + c[n];
        return sum;
    }
};

// Laplace's sites at η, and the log likelihood there, all from one exponential a row.
inline double laplace(const Problem &problem, const Vector &eta, Sites &sites) {
    double fit = 0.0;
    for (size_t n = 0; n < eta.size(); ++n) {
        const double tail = std::exp(-std::abs(eta[n])), large = 1 / (1 + tail), small = tail * large;
        const double up = eta[n] < 0 ? small : large, down = eta[n] < 0 ? large : small, t = problem.t[n];
        const double log_likelihood = t * eta[n] - std::max(eta[n], 0.0) - std::log1p(tail);
        const double curvature = up * down, shift = curvature * eta[n] + (t * down - (1 - t) * up);
        const double weight = problem.weight[n];
        sites.b[n] = weight * curvature;
        sites.h[n] = weight * shift;
        sites.c[n] = weight * (log_likelihood - (shift - 0.5 * curvature * eta[n]) * eta[n]);
        fit += weight * log_likelihood;
    }
    return fit;
}

// λ(ξ) = tanh(ξ/2)/(4ξ), by its series near 0.
inline double jj_lambda(double xi) {
    if (xi < 5e-3) return 1.0 / 8 - xi * xi / 96 + xi * xi * xi * xi / 960;
    return std::tanh(xi / 2) / (4 * xi);
}

// Jaakkola's sites, which touch at ±ξ.
inline void jaakkola(const Problem &problem, const Vector &xi, Sites &sites) {
    for (size_t n = 0; n < xi.size(); ++n) {
        const double lambda = jj_lambda(xi[n]), weight = problem.weight[n];
        sites.b[n] = weight * 2 * lambda;
        sites.h[n] = weight * (problem.t[n] - 0.5);
        sites.c[n] = weight * (lambda * xi[n] * xi[n] - xi[n] / 2 - std::log1p(std::exp(-xi[n])));
    }
}

}  // namespace bernoulli
