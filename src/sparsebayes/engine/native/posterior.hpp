// The posterior of the weights in the model, from scratch.
#pragma once

#include <cmath>
#include <string>

#include "blas.hpp"
#include "problem.hpp"

namespace gaussian {

struct Posterior {
    Vector mean;
    Square Sigma, root;  // root is lower triangular, Σ = rootᵀ root
    double half_logdet = 0.0;  // ½ log|I + A^-½ ΦᵀBΦ A^-½|
    double jitter = 0.0;
};

// Cholesky factor; jitter is added step by step when rounding made the matrix indefinite. Returns the jitter used.
inline double factorise(const Square &inner, const Vector &jitter_ladder, Square &root) {
    const int m = static_cast<int>(inner.size);
    double trace = 0.0;
    for (size_t k = 0; k < inner.size; ++k) trace += inner(k, k);
    const double mean_diagonal = trace / static_cast<double>(inner.size);
    for (const double rung : jitter_ladder) {
        root = inner;
        int info = 0;
        for (size_t k = 0; k < inner.size; ++k) root(k, k) += rung * mean_diagonal;
        if (m > 0) blas::potrf("L", &m, root.at.data(), &m, &info);
        if (m == 0 || (info == 0 && std::isfinite(mean_diagonal))) return rung;
    }
    throw NotPositiveDefinite("a " + std::to_string(m) + "×" + std::to_string(m) +
                              " matrix is not positive definite even with the largest jitter");
}

// From ΦᵀΦ, Φᵀt, α and σ² = 1/β. Dividing by √α on both sides keeps the factor safe for α over many decades. Memory of
// the previous posterior is reused.
inline void find_posterior(const Square &G, const Vector &projection, const Vector &alpha, double beta,
                           const Vector &jitter_ladder, Posterior &found) {
    const size_t M = alpha.size();
    const int m = static_cast<int>(M), one = 1;
    Vector scale(M);
    for (size_t k = 0; k < M; ++k) scale[k] = 1 / std::sqrt(alpha[k]);
    found.half_logdet = 0.0;
    found.mean.resize(M);
    Square &inner = found.Sigma;  // for now
    inner.resize(M);
    for (size_t k = 0; k < M; ++k) {
        for (size_t i = 0; i < M; ++i) inner(i, k) = scale[i] * (beta * G(i, k)) * scale[k];
        inner(k, k) += 1.0;
        found.mean[k] = scale[k] * beta * projection[k];
    }
    Square &root = found.root;
    found.jitter = factorise(inner, jitter_ladder, root);
    if (M == 0) return;
    int info = 0;
    blas::potrs("L", &m, &one, root.at.data(), &m, found.mean.data(), &m, &info);
    for (size_t k = 0; k < M; ++k) {
        found.mean[k] *= scale[k];
        found.half_logdet += std::log(root(k, k));
    }
    blas::trtri("L", "N", &m, root.at.data(), &m, &info);
    for (size_t k = 0; k < M; ++k)
        for (size_t i = k; i < M; ++i) root(i, k) *= scale[k];
    found.Sigma = root;
    blas::lauum("L", &m, found.Sigma.at.data(), &m, &info);
    for (size_t k = 0; k < M; ++k)
        for (size_t i = k + 1; i < M; ++i) found.Sigma(k, i) = found.Sigma(i, k);
}

}  // namespace gaussian
