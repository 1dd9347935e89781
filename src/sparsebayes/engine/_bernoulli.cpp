// What settling.py does in the small space of a model, and its pass over the candidates, compiled: the same numbers.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <tuple>

#include "_bernoulli_pass.hpp"
#include "_bernoulli_settle.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace bernoulli {

using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::device::cpu>;
using Table = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;

Vector copied(const Numbers &array) {
    Vector numbers(array.shape(0));
    for (size_t n = 0; n < numbers.size(); ++n)
        numbers[n] = array.data()[static_cast<std::int64_t>(n) * array.stride(0)];
    return numbers;
}

Matrix matrix(const Table &table) {
    return {table.data(), table.shape(0), table.shape(1), table.stride(0), table.stride(1)};
}

// Column by column.
Vector columns(const Table &table) {
    const Matrix from = matrix(table);
    Vector numbers(from.rows * from.columns);
    for (size_t m = 0; m < from.columns; ++m)
        for (size_t n = 0; n < from.rows; ++n) numbers[n + m * from.rows] = *from.address(n, m);
    return numbers;
}

// An array of NumPy's that takes the numbers over.
template <typename Number>
nb::object array(std::vector<Number> numbers) {
    auto *own = new std::vector<Number>(std::move(numbers));
    nb::capsule owner(own, [](void *at) noexcept { delete static_cast<std::vector<Number> *>(at); });
    return nb::cast(nb::ndarray<nb::numpy, Number>(own->data(), {own->size()}, owner));
}

nb::object array(Square square) {
    auto *own = new Vector(std::move(square.at));
    nb::capsule owner(own, [](void *at) noexcept { delete static_cast<Vector *>(at); });
    const auto size = static_cast<std::int64_t>(square.size);
    return nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<2>>(own->data(), {square.size, square.size}, owner,
                                                                {std::int64_t{1}, size}));
}

nb::object flags(std::vector<char> each) { return array(std::move(each)).attr("view")("bool"); }

// Lets Ctrl-C through now and then, for which the interpreter's lock is needed.
class Breath {
public:
    void operator()() {
        const auto now = std::chrono::steady_clock::now();
        if (now - last < std::chrono::milliseconds(50)) return;
        last = now;
        nb::gil_scoped_acquire lock;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }

private:
    std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

// The fields of settling.Settled, as far as they are numbers.
template <typename Carry>
nb::tuple settle(const Problem &problem, Table Phi, Numbers alpha, Numbers rate, Numbers where, double evidence,
                 double tol) {
    Settling<Carry> settling(problem, {columns(Phi), Phi.shape(0), Phi.shape(1)}, copied(alpha), copied(rate),
                             copied(where), evidence);
    Settled found = [&] {
        nb::gil_scoped_release unlocked;
        return settling.run(tol, Breath());
    }();
    nb::tuple sites = nb::make_tuple(array(std::move(found.sites.b)), array(std::move(found.sites.h)),
                                     array(std::move(found.sites.c)));
    nb::tuple view = nb::make_tuple(array(std::move(found.view.mean)), array(std::move(found.view.root)),
                                    found.view.logdet, found.view.jitter);
    return nb::make_tuple(flags(std::move(found.stays)), array(std::move(found.alpha)), array(std::move(found.where)),
                          found.evidence, sites, view, found.arrived);
}

nb::tuple factors_of(Table X, Numbers mean, Numbers scale, Numbers root_weight, Table Phi, Numbers b,
                     Numbers residual, Table root, double copy) {
    const Rows rows{matrix(X), copied(mean), copied(scale), copied(root_weight)};
    const Design design{columns(Phi), Phi.shape(0), Phi.shape(1)};
    const Square square{columns(root), root.shape(0)};
    const Vector precision = copied(b), rest = copied(residual);
    Factors found = [&] {
        nb::gil_scoped_release unlocked;
        return factors(rows, design, precision, rest, square, copy);
    }();
    return nb::make_tuple(array(std::move(found.S)), array(std::move(found.Q)), flags(std::move(found.copy)));
}

}  // namespace bernoulli

NB_MODULE(_bernoulli, module) {
    using namespace bernoulli;
    blas::load_more();
    nb::exception<sequential::NotPositiveDefinite>(module, "NotPositiveDefinite",
                                                   nb::module_::import_("numpy.linalg").attr("LinAlgError"));
    nb::class_<Problem>(module, "Settler")
        .def(
            "__init__",
            [](Problem *self, Numbers t, Numbers weight, double a, double least_alpha, double base_intercept,
               bool flat_intercept, std::int64_t settling, std::int64_t halvings, double longest, double slowest,
               double near, double longest_leap, double rounding, double least_curvature, double least_gamma,
               Vector jitter_ladder) {
                Constants constants{settling,     halvings, longest,         slowest,     near,
                                    longest_leap, rounding, least_curvature, least_gamma, jitter_ladder};
                new (self) Problem{copied(t), copied(weight), a, least_alpha, base_intercept, flat_intercept,
                                   std::move(constants)};
            },
            "t"_a, "weight"_a, nb::kw_only(), "a"_a, "least_alpha"_a, "base_intercept"_a, "flat_intercept"_a,
            "settling"_a, "halvings"_a, "longest"_a, "slowest"_a, "near"_a, "longest_leap"_a, "rounding"_a,
            "least_curvature"_a, "least_gamma"_a, "jitter_ladder"_a)
        .def("settle_mode", &settle<Mode>, "Phi"_a, "alpha"_a, "rate"_a, "w"_a, "evidence"_a, "tol"_a)
        .def("settle_contact", &settle<Contact>, "Phi"_a, "alpha"_a, "rate"_a, "xi"_a, "evidence"_a, "tol"_a)
        .def_static("factors", &factors_of, "X"_a, "mean"_a, "scale"_a, "root_weight"_a, "Phi"_a, "b"_a,
                    "residual"_a, "root"_a, "copy"_a);
}
