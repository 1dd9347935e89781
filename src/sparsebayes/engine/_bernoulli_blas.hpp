// What settling asks of BLAS and LAPACK beside what the sequential search does.
#pragma once

#include <cstdint>

#include "_blas.hpp"

namespace blas {

using Gemm = void (*)(const char *, const char *, const int *, const int *, const int *, const double *,
                      const double *, const int *, const double *, const int *, const double *, double *, const int *);
using Syrk = void (*)(const char *, const char *, const int *, const int *, const double *, const double *,
                      const int *, const double *, double *, const int *);
using Syev = void (*)(const char *, const char *, const int *, double *, const int *, double *, double *, const int *,
                      int *, const int *, int *);

inline Gemm gemm;
inline Syrk syrk;
inline Syev syevd;

inline void load_more() {
    load_all();
    nb::dict blas = nb::module_::import_("scipy.linalg.cython_blas").attr("__pyx_capi__");
    nb::dict lapack = nb::module_::import_("scipy.linalg.cython_lapack").attr("__pyx_capi__");
    load(gemm, blas, "dgemm");
    load(syrk, blas, "dsyrk");
    load(syevd, lapack, "dsyevd");
}

// y ← Mᵀ x
inline void project(std::size_t rows, std::size_t columns, const double *matrix, const double *x, double *y) {
    if (columns == 0) return;
    const int m = static_cast<int>(rows), n = static_cast<int>(columns), step = 1;
    const double one = 1.0, zero = 0.0;
    gemv("T", &m, &n, &one, matrix, &m, x, &step, &zero, y, &step);
}

// to ← A Bᵀ for A (m × k, columns `apart`) and B (n × k)
inline void product(std::size_t m, std::size_t k, std::size_t n, const double *A, std::int64_t apart, const double *B,
                    double *to) {
    const int rows = static_cast<int>(m), inner = static_cast<int>(k), columns = static_cast<int>(n);
    const int lead = static_cast<int>(apart);
    const double one = 1.0, zero = 0.0;
    gemm("N", "T", &rows, &columns, &inner, &one, A, &lead, B, &columns, &zero, to, &rows);
}

}  // namespace blas
