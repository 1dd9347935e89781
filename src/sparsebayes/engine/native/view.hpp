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
    double level = 0.0, level_variance = 0.0;
};

// Φ has a row of K numbers for each of N rows; b and h are the sites' precisions and shifts.
inline View take(const double *Phi, size_t N, size_t K, const double *b, const double *h, const Vector &alpha,
                 bool flat_intercept, const Vector &jitter_ladder) {
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
    return found;
}

struct Limits {
    double longest, min_curvature, min_gamma;
};

// x ← curvature⁻¹ x by Cholesky's factor, where all eigenvalues are above the least; says whether they are.
inline bool solve_concave(const Square &curvature, double least, Vector &x) {
    const int k = static_cast<int>(curvature.size), step = 1;
    int info = 0;
    Square lower = curvature;
    for (size_t j = 0; j < curvature.size; ++j) lower(j, j) -= least;
    blas::potrf("L", &k, lower.at.data(), &k, &info);
    if (info != 0) return false;
    lower = curvature;
    blas::potrf("L", &k, lower.at.data(), &k, &info);
    if (info != 0) return false;
    blas::potrs("L", &k, &step, lower.at.data(), &k, x.data(), &k, &info);
    return info == 0;
}

// The same with the absolute values of the eigenvalues, at least the least.
inline void solve_by_eigenvalues(Square &curvature, double least, Vector &x) {
    const size_t K = curvature.size;
    const int k = static_cast<int>(K), room = 1 + 6 * k + 2 * k * k, int_room = 3 + 5 * k, step = 1;
    const double one = 1.0, zero = 0.0;
    Vector values(K), along(K), work(room);
    std::vector<int> int_work(int_room);
    int info = 0;
    blas::syevd("V", "L", &k, curvature.at.data(), &k, values.data(), work.data(), &room, int_work.data(), &int_room,
                &info);
    if (info != 0) throw gaussian::NotPositiveDefinite("the eigenvalues of a curvature were not found");
    blas::gemv("T", &k, &k, &one, curvature.at.data(), &k, x.data(), &step, &zero, along.data(), &step);
    for (size_t j = 0; j < K; ++j) along[j] /= std::max(std::abs(values[j]), least);
    blas::multiply(K, K, 1.0, curvature.at.data(), along.data(), 0.0, x.data());
}

// The step of log α, and the nats that it promises; own_slope and own_curvature are the prior's terms.
inline std::pair<Vector, double> newton_step(const Vector &alpha, const Vector &mean, const double *Sigma, double n,
                                             const Vector &own_slope, const Vector &own_curvature,
                                             const Limits &limits) {
    const size_t K = alpha.size();
    Vector unit(K), slope(K), pulled(K);
    Square curvature;
    curvature.resize(K);
    for (size_t k = 0; k < K; ++k) {
        unit[k] = std::max(1 - alpha[k] * Sigma[k * (K + 1)], limits.min_gamma);
        pulled[k] = alpha[k] * mean[k] * mean[k];
    }
    for (size_t k = 0; k < K; ++k) {
        for (size_t i = 0; i < K; ++i) {
            const double common = Sigma[i + k * K];
            const double shared = alpha[i] * alpha[k] * common * (mean[i] * mean[k] + 0.5 * common);
            curvature(i, k) = -(shared + pulled[i] * pulled[k] / (2 * n)) / (unit[i] * unit[k]);
        }
        const double energy = pulled[k] + alpha[k] * Sigma[k * (K + 1)];
        curvature(k, k) += (0.5 * energy + own_curvature[k]) / (unit[k] * unit[k]);
        slope[k] = (0.5 * (1 - energy) + own_slope[k]) / unit[k];
    }
    Vector step = slope;
    if (K > 0 && !solve_concave(curvature, limits.min_curvature, step))
        solve_by_eigenvalues(curvature, limits.min_curvature, step);
    const double promise = 0.5 * std::inner_product(slope.begin(), slope.end(), step.begin(), 0.0);
    for (size_t k = 0; k < K; ++k) step[k] = std::clamp(step[k] / unit[k], -limits.longest, limits.longest);
    return {step, promise};
}

}  // namespace view
