// The posterior under sites on a few columns (engine/view.py, take_view), compiled.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "blas.hpp"
#include "posterior.hpp"
#include "problem.hpp"

namespace view {

using gaussian::Posterior;
using gaussian::Square;
using gaussian::Vector;
using std::size_t;

struct View {
    Posterior posterior;
    Vector eta, offset;
    double level = 0.0, level_variance = 0.0, logdet, integral;
};

// Φ has a row of K numbers for each of N rows; b, h and c are the sites' precisions, shifts and constants.
inline View take(const double *Phi, size_t N, size_t K, const double *b, const double *h, const double *c,
                 const Vector &alpha, bool flat_intercept, const Vector &jitter_ladder) {
    View found;
    found.eta.resize(N), found.offset.assign(K, 0.0);
    if (flat_intercept) {
        double total = 0.0, shift = 0.0;
        for (size_t n = 0; n < N; ++n) {
            total += b[n], shift += h[n];
            for (size_t k = 0; k < K; ++k) found.offset[k] += b[n] * Phi[n * K + k];
        }
        for (double &each : found.offset) each /= total;
        found.level = shift / total, found.level_variance = 1 / total;
    }
    Vector scaled(N * K), projection(K);
    for (size_t n = 0; n < N; ++n) {
        const double root = std::sqrt(b[n]), pull = h[n] - b[n] * found.level;
        for (size_t k = 0; k < K; ++k) {
            const double centred = Phi[n * K + k] - found.offset[k];
            scaled[n * K + k] = root * centred;
            projection[k] += centred * pull;
        }
    }
    Square G;
    G.resize(K);
    const int k = static_cast<int>(K), n = static_cast<int>(N), step = 1;
    const double one = 1.0, zero = 0.0;
    if (K > 0) blas::syrk("L", "N", &k, &n, &one, scaled.data(), &k, &zero, G.at.data(), &k);
    for (size_t j = 0; j < K; ++j)
        for (size_t i = j + 1; i < K; ++i) G(j, i) = G(i, j);
    gaussian::find_posterior(G, projection, alpha, 1.0, jitter_ladder, found.posterior);
    const Vector &mean = found.posterior.mean;
    const double origin = std::inner_product(mean.begin(), mean.end(), found.offset.begin(), 0.0);
    std::fill(found.eta.begin(), found.eta.end(), found.level - origin);
    if (K > 0) blas::gemv("T", &k, &n, &one, Phi, &k, mean.data(), &step, &one, found.eta.data(), &step);
    found.logdet = -2 * found.posterior.half_logdet;
    double penalty = 0.0, fit = 0.0;
    for (size_t j = 0; j < K; ++j) {
        found.logdet -= std::log(alpha[j]);
        penalty += alpha[j] * mean[j] * mean[j];
    }
    for (size_t i = 0; i < N; ++i) fit += (h[i] - 0.5 * b[i] * found.eta[i]) * found.eta[i] + c[i];
    constexpr double two_pi = 6.283185307179586476925;
    found.integral = fit - 0.5 * penalty + 0.5 * found.logdet;
    if (flat_intercept) found.integral += 0.5 * std::log(two_pi * found.level_variance);
    return found;
}

}  // namespace view
