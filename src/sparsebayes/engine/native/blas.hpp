// BLAS and LAPACK as SciPy brings them: pointers out of its capsules, so that nothing has to be found or linked.
#pragma once

#include <nanobind/nanobind.h>

#include <cstring>
#include <stdexcept>
#include <string>

namespace blas {

namespace nb = nanobind;

// The Fortran interface: everything by address, matrices column by column.
using Gemv = void (*)(const char *, const int *, const int *, const double *, const double *, const int *,
                      const double *, const int *, const double *, double *, const int *);
using Trmm = void (*)(const char *, const char *, const char *, const char *, const int *, const int *,
                      const double *, const double *, const int *, double *, const int *);
using Potrf = void (*)(const char *, const int *, double *, const int *, int *);
using Potrs = void (*)(const char *, const int *, const int *, const double *, const int *, double *, const int *,
                       int *);
using Trtri = void (*)(const char *, const char *, const int *, double *, const int *, int *);
using Lauum = Potrf;
using Syrk = void (*)(const char *, const char *, const int *, const int *, const double *, const double *,
                      const int *, const double *, double *, const int *);

inline Gemv gemv;
inline Trmm trmm;
inline Potrf potrf;
inline Potrs potrs;
inline Trtri trtri;
inline Lauum lauum;
inline Syrk syrk;

template <typename Function>
void load(Function &function, nb::dict capsules, const char *name) {
    nb::object capsule = capsules[name];
    const char *signature = PyCapsule_GetName(capsule.ptr());
    // Whoever builds SciPy with 64-bit integers in its BLAS has another signature, and gets the NumPy form.
    if (signature == nullptr || std::strstr(signature, " int *") == nullptr)
        throw std::runtime_error(std::string("SciPy's ") + name + " does not take plain integers");
    function = reinterpret_cast<Function>(PyCapsule_GetPointer(capsule.ptr(), signature));
}

inline void load_all() {
    nb::dict blas = nb::module_::import_("scipy.linalg.cython_blas").attr("__pyx_capi__");
    nb::dict lapack = nb::module_::import_("scipy.linalg.cython_lapack").attr("__pyx_capi__");
    load(gemv, blas, "dgemv");
    load(trmm, blas, "dtrmm");
    load(potrf, lapack, "dpotrf");
    load(potrs, lapack, "dpotrs");
    load(trtri, lapack, "dtrtri");
    load(lauum, lapack, "dlauum");
    load(syrk, blas, "dsyrk");
}

// y ← scale M x + keep y, for M with `rows` rows stored without gaps.
inline void multiply(std::size_t rows, std::size_t columns, double scale, const double *matrix, const double *x,
                     double keep, double *y) {
    if (rows == 0) return;  // BLAS complains, on standard output, of a leading dimension of zero
    if (columns == 0) {  // BLAS would leave y alone, whatever `keep` says
        for (std::size_t i = 0; i < rows; ++i) y[i] = keep == 0.0 ? 0.0 : keep * y[i];
        return;
    }
    const int m = static_cast<int>(rows), n = static_cast<int>(columns), one = 1;
    gemv("N", &m, &n, &scale, matrix, &m, x, &one, &keep, y, &one);
}

}  // namespace blas
