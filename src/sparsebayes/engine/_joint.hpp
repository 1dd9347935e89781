// All precisions at once, as in joint.py: Newton's method for the objective in log α, with the noise in tow or held.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "_blas.hpp"
#include "_problem.hpp"

namespace sequential {

constexpr double DAMPING[] = {1e-6, 1e-3, 1e-2, 0.1, 1.0};
constexpr double LONGEST = 2.0;
constexpr double PARTS[] = {1.0, 0.25, 0.0625};

// Newton's step of log α; empty if it promises less than `tol` nats. `bend` and `lower` are room to work in.
inline Vector joint_change(const Vector &alpha, const Vector &mean, const Square &Sigma, double n, double pull,
                           double tol, Square &bend, Square &lower) {
    const size_t M = alpha.size();
    const int m = static_cast<int>(M), one = 1;
    Vector pulled(M), slope(M);
    for (size_t k = 0; k < M; ++k) {
        pulled[k] = alpha[k] * mean[k] * mean[k];
        slope[k] = 1 - alpha[k] * Sigma(k, k) - pulled[k];
    }
    bend.resize(M);
    for (size_t k = 0; k < M; ++k) {
        for (size_t i = 0; i < M; ++i) {
            const double shared = alpha[i] * alpha[k] * Sigma(i, k) * (Sigma(i, k) + 2 * mean[i] * mean[k]);
            bend(i, k) = -shared - pulled[i] * pulled[k] / n;
        }
        bend(k, k) += 1 - slope[k] + pull / alpha[k];
    }
    for (size_t k = 0; k < M; ++k) slope[k] += pull / alpha[k];
    for (const double damping : DAMPING) {
        if (M == 0) break;
        lower = bend;
        Vector change = slope;
        int info = 0;
        for (size_t k = 0; k < M; ++k) lower(k, k) += damping;
        blas::potrf("L", &m, lower.at.data(), &m, &info);
        if (info != 0) continue;
        blas::potrs("L", &m, &one, lower.at.data(), &m, change.data(), &m, &info);
        const bool is_short = std::all_of(change.begin(), change.end(), [](double c) { return std::abs(c) <= LONGEST; });
        if (!is_short) continue;
        const double promise = 0.25 * std::inner_product(slope.begin(), slope.end(), change.begin(), 0.0);
        return promise > tol ? change : Vector();
    }
    return {};
}

}  // namespace sequential
