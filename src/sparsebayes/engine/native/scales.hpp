// Newton's step of all log precisions (engine/scales.py), compiled.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "blas.hpp"
#include "problem.hpp"

namespace scales {

using gaussian::Square;
using gaussian::Vector;
using std::size_t;

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

}  // namespace scales
