// S and Q of candidates under a view, by one pass over the rows of their design: `factors` of settling.py.
#pragma once

#include <algorithm>
#include <cmath>

#include "_bernoulli_blas.hpp"
#include "_bernoulli_problem.hpp"

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
// Wheels travel, so the pass is compiled twice, and the loader takes what the machine can do.
#define FOR_EACH_MACHINE __attribute__((target_clones("fma", "default")))
#else
#define FOR_EACH_MACHINE
#endif

namespace bernoulli {

constexpr size_t TOGETHER = 8;     // rows whose products are added up in registers
constexpr size_t STRETCH = 128;    // columns of which so many rows stay in the nearest cache
constexpr size_t PANEL = 1 << 14;  // numbers that stay in the next one: the sums of a panel of columns
constexpr size_t WIDE = 32;        // products with more than so many columns at once are BLAS's, which copies X

// sums[k, m] += Σ_r R[r, k] x_r[m] and squares[m] += Σ_r weight_r x_r[m]², over eight rows; sums of one k are `apart`
// from those of the next.
FOR_EACH_MACHINE
static void add_rows(const double *const x[TOGETHER], size_t columns, const double *R, size_t width,
                     const double *weight, double *__restrict sums, size_t apart, double *__restrict squares) {
    const double *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3], *x4 = x[4], *x5 = x[5], *x6 = x[6], *x7 = x[7];
    for (size_t m = 0; m < columns; ++m)
        squares[m] = squares[m] + weight[0] * x0[m] * x0[m] + weight[1] * x1[m] * x1[m] + weight[2] * x2[m] * x2[m] +
                     weight[3] * x3[m] * x3[m] + weight[4] * x4[m] * x4[m] + weight[5] * x5[m] * x5[m] +
                     weight[6] * x6[m] * x6[m] + weight[7] * x7[m] * x7[m];
    for (size_t k = 0; k < width; ++k) {
        double *__restrict sum = sums + k * apart;
        const double *r = R + k;
        const double r0 = r[0], r1 = r[width], r2 = r[2 * width], r3 = r[3 * width], r4 = r[4 * width],
                     r5 = r[5 * width], r6 = r[6 * width], r7 = r[7 * width];
        for (size_t m = 0; m < columns; ++m)
            sum[m] = sum[m] + r0 * x0[m] + r1 * x1[m] + r2 * x2[m] + r3 * x3[m] + r4 * x4[m] + r5 * x5[m] +
                     r6 * x6[m] + r7 * x7[m];
    }
}

// X as it lies in memory: any strides, in numbers.
struct Matrix {
    const double *at;
    size_t rows, columns;
    std::int64_t down, right;

    const double *address(size_t n, size_t m) const {
        return at + static_cast<std::int64_t>(n) * down + static_cast<std::int64_t>(m) * right;
    }
};

struct Products {
    Vector sums, squares;  // XᵀR (columns of X × width of R, column by column) and diag(Xᵀ diag(weight) X)
};

// One pass over X. R has a row of `width` numbers for each of X, and weight one; zeros fill the last eight rows up.
inline Products products(const Matrix &X, const Vector &R, size_t width, const Vector &weight) {
    const size_t M = X.columns, panel = std::max(PANEL / width / STRETCH, size_t{1}) * STRETCH;
    const bool wide = width > WIDE && X.right == 1;
    Products found{Vector(width * M), Vector(M)};
    if (wide) blas::product(M, X.rows, width, X.at, X.down, R.data(), found.sums.data());
    const Vector nothing(STRETCH);
    Vector copied(TOGETHER * STRETCH);
    for (size_t left = 0; left < M; left += panel)
        for (size_t n = 0; n < X.rows; n += TOGETHER)
            for (size_t from = left; from < std::min(left + panel, M); from += STRETCH) {
                const size_t count = std::min(STRETCH, M - from);
                const double *x[TOGETHER];
                for (size_t r = 0; r < TOGETHER; ++r) {
                    x[r] = n + r < X.rows ? X.address(n + r, from) : nothing.data();
                    if (X.right == 1 || n + r >= X.rows) continue;
                    for (size_t m = 0; m < count; ++m) copied[r * STRETCH + m] = *X.address(n + r, from + m);
                    x[r] = &copied[r * STRETCH];
                }
                add_rows(x, count, &R[n * width], wide ? 0 : width, &weight[n], &found.sums[from], M,
                         &found.squares[from]);
            }
    return found;
}

// DenseRows: the design diag(root_weight) (X - 1 meanᵀ) diag(1/scale).
struct Rows {
    Matrix X;
    Vector mean, scale, root_weight;
};

struct Factors {
    Vector S, Q;
    std::vector<char> copy;
};

// For the model's Φ with Σ = rootᵀ root, site precisions b and the residual h - BΦμ.
inline Factors factors(const Rows &rows, const Design &Phi, const Vector &b, const Vector &residual,
                       const Square &root, double copy) {
    const size_t N = Phi.rows, K = Phi.columns, M = rows.X.columns, width = K + 2;
    const size_t filled = (N + TOGETHER - 1) / TOGETHER * TOGETHER;
    Vector R(filled * width), weight(filled), total(K + 1), energy_inside(K);
    double weight_total = 0.0;
    for (size_t n = 0; n < N; ++n) {
        const double factor = rows.root_weight[n];
        for (size_t k = 0; k < K; ++k) {
            const double phi = Phi.column(k)[n];
            R[n * width + k] = factor * b[n] * phi;
            energy_inside[k] += b[n] * phi * phi;
        }
        R[n * width + K] = factor * residual[n];
        R[n * width + K + 1] = weight[n] = factor * factor * b[n];
        for (size_t k = 0; k <= K; ++k) total[k] += R[n * width + k];
        weight_total += weight[n];
    }
    Products found = products(rows.X, R, width, weight);
    const double *linear = &found.sums[(K + 1) * M];
    Vector &energy = found.squares;
    for (size_t m = 0; m < M; ++m) {
        const double mean = rows.mean[m], raw = energy[m];
        energy[m] += mean * (mean * weight_total - 2 * linear[m]);
        if (energy[m] < 1e-6 * raw) {  // what centring leaves no digits of is formed
            energy[m] = 0.0;
            for (size_t n = 0; n < N; ++n) {
                const double centred = *rows.X.address(n, m) - mean;
                energy[m] += weight[n] * centred * centred;
            }
        }
        energy[m] /= rows.scale[m] * rows.scale[m];
        for (size_t k = 0; k <= K; ++k) {
            double &product = found.sums[k * M + m];
            product = (product - mean * total[k]) / rows.scale[m];
        }
    }
    Factors result{energy, Vector(M), std::vector<char>(M)};
    std::copy_n(&found.sums[K * M], M, result.Q.data());
    for (size_t k = 0; k < K; ++k)
        for (size_t m = 0; m < M; ++m) {
            const double across = found.sums[k * M + m];
            result.copy[m] |= across * across >= copy * copy * energy[m] * energy_inside[k];
        }
    const int rows_of = static_cast<int>(M), k = static_cast<int>(K);
    const double one = 1.0;
    if (K > 0) blas::trmm("R", "L", "T", "N", &rows_of, &k, &one, root.at.data(), &k, found.sums.data(), &rows_of);
    for (size_t j = 0; j < K; ++j)
        for (size_t m = 0; m < M; ++m) result.S[m] -= found.sums[j * M + m] * found.sums[j * M + m];
    for (double &each : result.S) each = std::max(each, 0.0);
    return result;
}

}  // namespace bernoulli
