// The posterior under sites on a few columns (engine/view.py, take_view), and Newton's step of its log precisions
// (engine/scales.py, newton_step), compiled.
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

struct Limits {
    double longest, min_gamma;
    Vector damping;
};

// (curvature + damping)⁻¹ slope with the least damping that makes it a step upwards; where none does, each precision
// takes a step of its own, by the absolute value of its curvature.
inline Vector uphill(const Square &curvature, const Vector &slope, const Vector &ladder) {
    const int k = static_cast<int>(curvature.size), one = 1;
    for (const double damping : ladder) {
        if (k == 0) break;
        Square lower = curvature;
        Vector step = slope;
        int info = 0;
        for (size_t j = 0; j < curvature.size; ++j) lower(j, j) += damping;
        blas::potrf("L", &k, lower.at.data(), &k, &info);
        if (info != 0) continue;
        blas::potrs("L", &k, &one, lower.at.data(), &k, step.data(), &k, &info);
        return step;
    }
    Vector step = slope;
    for (size_t j = 0; j < step.size(); ++j) step[j] /= std::max(std::abs(curvature(j, j)), ladder.back());
    return step;
}

// The step of log α, and the nats that it promises; own_slope and own_curvature are the prior's terms.
inline std::pair<Vector, double> newton_step(const Vector &alpha, const Vector &mean, const double *Sigma, double n,
                                             const Vector &own_slope, const Vector &own_curvature,
                                             const Limits &limits) {
    const size_t K = alpha.size();
    Vector unit(K), slope(K), pulled(K), scaled(K);
    Square curvature;  // its lower half
    curvature.resize(K);
    for (size_t k = 0; k < K; ++k) {
        unit[k] = std::max(1 - alpha[k] * Sigma[k * (K + 1)], limits.min_gamma);
        scaled[k] = alpha[k] / unit[k];
        pulled[k] = scaled[k] * mean[k] * mean[k];
    }
    for (size_t k = 0; k < K; ++k) {
        const double *column = Sigma + k * K;
        double *to = &curvature.at[k * K];
        const double by_scale = -scaled[k], by_mean = mean[k], by_pull = -pulled[k] / (2 * n);
        for (size_t i = k; i < K; ++i)
            to[i] = by_scale * scaled[i] * column[i] * (by_mean * mean[i] + 0.5 * column[i]) + by_pull * pulled[i];
        const double energy = alpha[k] * (mean[k] * mean[k] + column[k]);
        to[k] += (0.5 * energy + own_curvature[k]) / (unit[k] * unit[k]);
        slope[k] = (0.5 * (1 - energy) + own_slope[k]) / unit[k];
    }
    Vector step = uphill(curvature, slope, limits.damping);
    const double promise = 0.5 * std::inner_product(slope.begin(), slope.end(), step.begin(), 0.0);
    for (size_t k = 0; k < K; ++k) step[k] = std::clamp(step[k] / unit[k], -limits.longest, limits.longest);
    return {step, promise};
}

}  // namespace view
