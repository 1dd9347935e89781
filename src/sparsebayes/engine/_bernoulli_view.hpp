// The posterior under the sites of a model, its evidence, and Newton's step of its log precisions.
#pragma once

#include <string>

#include "_bernoulli_blas.hpp"
#include "_bernoulli_problem.hpp"
#include "_posterior.hpp"
#include "_rules.hpp"

namespace bernoulli {

struct View {
    Vector mean, eta;
    Square root, Sigma;  // root is lower triangular, Σ = rootᵀ root
    double logdet = 0.0, jitter = 0.0;
};

inline View view_of(const Problem &problem, const Design &Phi, const Vector &alpha, const Sites &sites) {
    const size_t N = Phi.rows, K = Phi.columns;
    const int n = static_cast<int>(N), k = static_cast<int>(K), step = 1;
    const double one = 1.0, zero = 0.0;
    View view{Vector(K), Vector(N), {}, {}};
    if (K == 0) return view;
    Vector scaled(N * K), root_b(N);
    for (size_t i = 0; i < N; ++i) root_b[i] = std::sqrt(sites.b[i]);
    for (size_t j = 0; j < K; ++j)
        for (size_t i = 0; i < N; ++i) scaled[i + j * N] = root_b[i] * Phi.column(j)[i];
    Square inner{Vector(K * K), K};
    blas::syrk("L", "T", &k, &n, &one, scaled.data(), &n, &zero, inner.at.data(), &k);
    for (size_t j = 0; j < alpha.size(); ++j) inner(j, j) += alpha[j];
    view.jitter = sequential::factorise(inner, problem.constants.jitter_ladder, view.root);
    blas::project(N, K, Phi.at.data(), sites.h.data(), view.mean.data());
    int info = 0;
    blas::potrs("L", &k, &step, view.root.at.data(), &k, view.mean.data(), &k, &info);
    for (size_t j = 0; j < K; ++j) view.logdet -= 2 * std::log(view.root(j, j));
    blas::trtri("L", "N", &k, view.root.at.data(), &k, &info);
    for (size_t j = 0; j < K; ++j) std::fill_n(&view.root(0, j), j, 0.0);
    view.Sigma = view.root;
    blas::lauum("L", &k, view.Sigma.at.data(), &k, &info);
    for (size_t j = 0; j < K; ++j)
        for (size_t i = j + 1; i < K; ++i) view.Sigma(j, i) = view.Sigma(i, j);
    blas::multiply(N, K, 1.0, Phi.at.data(), view.mean.data(), 0.0, view.eta.data());
    return view;
}

// Log ∫ exp(Σ sites) N(w; 0, A⁻¹) dw (d intercept), and the hyper-prior.
inline double evidence(const Problem &problem, const View &view, const Sites &sites, const Vector &alpha,
                       const Vector &rate) {
    double value = sites.value(view.eta) + 0.5 * view.logdet;
    for (size_t k = 0; k < alpha.size(); ++k) {
        value += 0.5 * (std::log(alpha[k]) - alpha[k] * view.mean[k] * view.mean[k]);
        value += rules::log_hyper_prior(alpha[k], problem.a, rate[k]);
    }
    constexpr double log_two_pi = 1.8378770664093454836;
    return value + 0.5 * log_two_pi * static_cast<double>(view.mean.size() - alpha.size());
}

// Where all eigenvalues of the curvature are above the least, x = curvature⁻¹ slope by Cholesky's factor.
inline bool solved_as_concave(const Square &curvature, double least, Vector &x) {
    const int k = static_cast<int>(curvature.size), step = 1;
    int info = 0;
    Square lower = curvature;
    for (size_t j = 0; j < curvature.size; ++j) lower(j, j) -= least;
    blas::potrf("L", &k, lower.at.data(), &k, &info);
    if (info != 0) return false;
    lower = curvature;
    blas::potrf("L", &k, lower.at.data(), &k, &info);
    blas::potrs("L", &k, &step, lower.at.data(), &k, x.data(), &k, &info);
    return info == 0;
}

// The same with the absolute values of the eigenvalues, at least the least.
inline void solve_by_eigenvalues(Square &curvature, double least, Vector &x) {
    const size_t K = curvature.size;
    const int k = static_cast<int>(K), room = 1 + 6 * k + 2 * k * k, int_room = 3 + 5 * k;
    Vector values(K), along(K), work(room);
    std::vector<int> int_work(int_room);
    int info = 0;
    blas::syevd("V", "L", &k, curvature.at.data(), &k, values.data(), work.data(), &room, int_work.data(), &int_room,
                &info);
    if (info != 0) throw sequential::NotPositiveDefinite("the eigenvalues of a curvature were not found");
    blas::project(K, K, curvature.at.data(), x.data(), along.data());
    for (size_t j = 0; j < K; ++j) along[j] /= std::max(std::abs(values[j]), least);
    blas::multiply(K, K, 1.0, curvature.at.data(), along.data(), 0.0, x.data());
}

// Newton's step of the view's log evidence in log α, as `newton_scales` of settling.py.
inline Vector newton_scales(const Problem &problem, const View &view, const Vector &alpha, const Vector &rate) {
    const size_t K = alpha.size();
    const double least = problem.constants.least_curvature;
    Vector step(K), unit(K);
    for (size_t k = 0; k < K; ++k) unit[k] = std::max(1 - alpha[k] * view.Sigma(k, k), problem.constants.least_gamma);
    Square curvature{Vector(K * K), K};
    for (size_t k = 0; k < K; ++k) {
        for (size_t i = 0; i < K; ++i) {
            const double near = view.Sigma(i, k), shared = 2 * view.mean[i] * view.mean[k] + near;
            curvature(i, k) = -0.5 * alpha[i] * alpha[k] * near * shared / (unit[i] * unit[k]);
        }
        const double energy = alpha[k] * (view.mean[k] * view.mean[k] + view.Sigma(k, k));
        curvature(k, k) += (0.5 * energy + rate[k] * alpha[k]) / (unit[k] * unit[k]);
        step[k] = (0.5 * (1 - energy) + problem.a - rate[k] * alpha[k]) / unit[k];
    }
    if (K > 0 && !solved_as_concave(curvature, least, step)) solve_by_eigenvalues(curvature, least, step);
    for (size_t k = 0; k < K; ++k) step[k] /= unit[k];
    return step;
}

}  // namespace bernoulli
