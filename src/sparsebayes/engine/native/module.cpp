// The compiled form of engine/state.py: same numbers, no decisions.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <tuple>

#include "flips.hpp"
#include "leave_one_out.hpp"
#include "state.hpp"
#include "view.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gaussian {

using Array = nb::ndarray<const double, nb::ndim<1>, nb::device::cpu>;
using Contiguous = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;

Vector numbers(nb::handle array) {
    const Array view = nb::cast<Array>(array);
    Vector copy(view.shape(0));
    for (size_t m = 0; m < copy.size(); ++m) copy[m] = view.data()[static_cast<std::int64_t>(m) * view.stride(0)];
    return copy;
}

// A NumPy array that owns the numbers; a matrix is stored column by column.
template <typename Number>
nb::object array(std::vector<Number> numbers, size_t rows, int n_axes) {
    auto *own = new std::vector<Number>(std::move(numbers));
    nb::capsule owner(own, [](void *at) noexcept { delete static_cast<std::vector<Number> *>(at); });
    const size_t shape[] = {rows, rows > 0 ? own->size() / rows : 0};
    const std::int64_t strides[] = {1, static_cast<std::int64_t>(rows)};
    return nb::cast(nb::ndarray<nb::numpy, Number>(own->data(), n_axes, shape, owner, strides));
}

nb::object array(Vector numbers) {
    const size_t rows = numbers.size();
    return array(std::move(numbers), rows, 1);
}

nb::object lower_root(const State &state) {
    Square root = state.posterior.root;
    for (size_t k = 0; k < root.size; ++k) std::fill_n(&root(0, k), k, 0.0);
    return array(root.at, root.size, 2);
}

nb::object gram(const State &state) {
    Vector all;
    all.reserve(state.active.size() * state.problem.n_columns());
    for (const Vector &column : state.gram) all.insert(all.end(), column.begin(), column.end());
    return array(std::move(all), state.problem.n_columns(), 2);
}

// Numbers of a vector, or of a matrix column by column.
Vector by_columns(nb::handle array) {
    if (nb::cast<size_t>(nb::getattr(array, "ndim")) < 2) return numbers(array);
    const Matrix view = nb::cast<Matrix>(array);
    Vector copy(view.shape(0) * view.shape(1));
    for (size_t b = 0; b < view.shape(1); ++b)
        for (size_t a = 0; a < view.shape(0); ++a)
            copy[b * view.shape(0) + a] = view.data()[static_cast<std::int64_t>(a) * view.stride(0) +
                                                      static_cast<std::int64_t>(b) * view.stride(1)];
    return copy;
}

// Of every weight: a vector or, with several outputs, a column for each.
nb::object of_weights(const Flips &flips, const Vector &values) {
    return array(values, flips.size(), flips.has_outputs ? 2 : 1);
}

// Of every output.
nb::object of_outputs(const Flips &flips, const Vector &values) {
    return flips.has_outputs ? array(values) : nb::cast(values[0]);
}

double logdet(const State &state) {
    double value = -2 * state.posterior.half_logdet;
    for (const double each : state.alpha_inside()) value -= std::log(each);
    return value;
}

Vector row_of(const Matrix &matrix, std::int64_t j) {
    Vector found(matrix.shape(1));
    const double *row = matrix.data() + j * matrix.stride(0);
    for (size_t m = 0; m < found.size(); ++m) found[m] = row[static_cast<std::int64_t>(m) * matrix.stride(1)];
    return found;
}

// Φᵀφ_j: from the whole Gram matrix where there is one, or else asked of the design, with the interpreter's lock.
std::function<Vector(std::int64_t, const std::function<Indices()> &)> gram_columns(nb::object design) {
    const nb::object whole = nb::getattr(design, "known_gram", nb::none());
    if (!whole.is_none())
        return [gram = nb::cast<Matrix>(whole)](std::int64_t j, const std::function<Indices()> &) { return row_of(gram, j); };
    return [ask = nb::object(design.attr("gram_column"))](std::int64_t j, const std::function<Indices()> &ahead) {
        nb::gil_scoped_acquire lock;
        return numbers(ask(j, nb::cpp_function([&ahead] { return ahead(); })));
    };
}

// The same for chains, whose rows are in memory, or are asked of a function.
std::function<Vector(std::int64_t)> gram_rows(nb::object gram) {
    if (!PyCallable_Check(gram.ptr()))
        return [known = nb::cast<Matrix>(gram)](std::int64_t j) { return row_of(known, j); };
    return [gram](std::int64_t j) {
        nb::gil_scoped_acquire lock;
        return numbers(gram(j));
    };
}

Problem read_problem(nb::object problem, double a, Vector b, double rate, double min_alpha, bool positive, Vector nats) {
    const auto number = [&](const char *name) { return nb::cast<double>(problem.attr(name)); };
    Problem read;
    read.n_weighted = number("n_weighted"), read.energy = number("energy");
    read.c = number("c"), read.d = number("d"), read.n = number("n");
    read.a = a, read.rate = rate, read.min_alpha = min_alpha, read.positive = positive;
    read.b = std::move(b), read.nats = std::move(nats);
    read.flat_intercept = PyObject_IsTrue(nb::object(problem.attr("flat_intercept")).ptr()) == 1;
    read.column_energy = numbers(problem.attr("column_energy"));
    read.projection = numbers(problem.attr("projection"));
    read.knows_gram = !nb::object(nb::getattr(problem.attr("design"), "known_gram", nb::none())).is_none();
    read.gram_column = gram_columns(problem.attr("design"));
    read.residual_by_rows = [ask = nb::object(problem.attr("residual_by_rows"))](const Indices &active,
                                                                                const Vector &mean) {
        nb::gil_scoped_acquire lock;
        return nb::cast<double>(ask(active, mean));
    };
    return read;
}

// core/prices.py, Marginal.
MarginalPrice marginal(const nb::tuple &price) {
    const auto number = [&price](int k) { return nb::cast<double>(price[k]); };
    return {number(0), number(1), number(2), number(3)};
}

}  // namespace gaussian

NB_MODULE(_native, module) {
    using namespace gaussian;
    blas::load_all();
    nb::exception<NotPositiveDefinite>(module, "NotPositiveDefinite",
                                       nb::module_::import_("numpy.linalg").attr("LinAlgError"));
    const auto unlocked = nb::call_guard<nb::gil_scoped_release>();
    module.def(
        "take_view",
        [](nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> Phi, Contiguous b, Contiguous h,
           Contiguous c, nb::handle alpha, bool flat_intercept, const Vector &jitter_ladder) {
            const Vector precisions = numbers(alpha);
            view::View found = [&] {
                nb::gil_scoped_release unlocked;
                return view::take(Phi.data(), Phi.shape(0), Phi.shape(1), b.data(), h.data(), c.data(),
                                  precisions, flat_intercept, jitter_ladder);
            }();
            Posterior &posterior = found.posterior;
            const size_t K = precisions.size();
            for (size_t k = 0; k < K; ++k) std::fill_n(&posterior.root(0, k), k, 0.0);
            return nb::make_tuple(array(std::move(posterior.mean)), array(std::move(posterior.Sigma.at), K, 2),
                                  array(std::move(posterior.root.at), K, 2), found.logdet, posterior.jitter,
                                  array(std::move(found.offset)), found.level, found.level_variance,
                                  array(std::move(found.eta)), found.integral);
        },
        "Phi"_a, "b"_a, "h"_a, "c"_a, "alpha"_a, "flat_intercept"_a, "jitter_ladder"_a);
    module.def(
        "newton_step",
        [](nb::handle alpha, nb::handle mean, nb::ndarray<const double, nb::ndim<2>, nb::f_contig, nb::device::cpu> Sigma,
           double n, nb::handle own_slope, nb::handle own_curvature, double longest, double min_gamma,
           const Vector &damping) {
            auto [step, promise] = scales::newton_step(numbers(alpha), numbers(mean), Sigma.data(), n, numbers(own_slope),
                                                     numbers(own_curvature), {longest, min_gamma, damping});
            return nb::make_tuple(array(std::move(step)), promise);
        },
        "alpha"_a, "mean"_a, "Sigma"_a, "n"_a, "own_slope"_a, "own_curvature"_a, nb::kw_only(), "longest"_a,
        "min_gamma"_a, "damping"_a);
    module.def(
        "best_replacements",
        [](nb::handle S, nb::handle Q, nb::handle least, Rows common, Rows beyond, nb::handle var, nb::handle mean,
           nb::handle taken, nb::handle residual) {
            leave_one_out::Replacements found =
                leave_one_out::best(common.shape(0), numbers(S), numbers(Q), numbers(least), common.data(), beyond.data(),
                                    numbers(var), numbers(mean), numbers(taken), numbers(residual));
            return nb::make_tuple(array(std::move(found.s)), array(std::move(found.q)), array(std::move(found.beyond)));
        },
        "S"_a, "Q"_a, "least"_a, "common"_a, "beyond"_a, "var"_a, "mean"_a, "taken"_a, "residual"_a);
    nb::class_<Constants>(module, "Constants")
        .def(
            "__init__",
            [](Constants *self, double copy, double lost_digits, double min_share_left, std::int64_t prefetch,
               Vector jitter_ladder, Vector step_parts, double longest, double min_gamma, Vector damping) {
                new (self) Constants{copy, lost_digits, min_share_left, prefetch, std::move(jitter_ladder),
                                     std::move(step_parts), {longest, min_gamma, std::move(damping)}};
            },
            nb::kw_only(), "copy"_a, "lost_digits"_a, "min_share_left"_a, "prefetch"_a, "jitter_ladder"_a,
            "step_parts"_a, "longest"_a, "min_gamma"_a, "damping"_a);
    nb::class_<State>(module, "State", nb::dynamic_attr())
        .def(
            "__init__",
            [](State *self, nb::object problem, Indices active, Vector alpha, double noise, const Constants &constants,
               size_t working_size, double a, nb::handle b, double rate, double min_alpha, bool positive,
               nb::handle nats) {
                Problem read = read_problem(problem, a, numbers(b), rate, min_alpha, positive, numbers(nats));
                new (self) State(std::move(read), constants, working_size, active, alpha, noise);
            },
            "problem"_a, "active"_a, "alpha"_a, "noise"_a, "constants"_a, "working_size"_a, nb::kw_only(), "a"_a,
            "b"_a, "rate"_a, "min_alpha"_a, "positive"_a, "nats"_a)
        .def("survey", [](State &self, nb::tuple price) {
            const MarginalPrice numbers = marginal(price);
            Moves moves = [&] {
                nb::gil_scoped_release unlocked;
                return self.survey(numbers);
            }();
            return nb::make_tuple(array(std::move(moves.alpha)), array(std::move(moves.gain)),
                                  array(std::move(moves.worth)));
        }, "price"_a)
        .def(
            "best",
            [](const State &self, bool may_add, double min_novelty, nb::tuple price) {
                const Move move = self.best(may_add, min_novelty, marginal(price));
                return std::make_tuple(move.j, move.gain, move.alpha);
            },
            "may_add"_a, "min_novelty"_a, "price"_a)
        .def(
            "advance",
            [](State &self, std::int64_t n, double tol, std::int64_t additions, double min_novelty, nb::callable price,
               double noise_floor, bool follows, std::int64_t every, const std::string &due) {
                // By the number of units; where prices differ by column, they depend on the columns of the model too.
                if (!self.one_price) self.known_prices.clear();
                auto &known = self.known_prices;
                const auto price_of = [&](size_t k) {
                    if (const auto found = known.find(k); found != known.end()) return found->second;
                    nb::gil_scoped_acquire lock;
                    return known[k] = marginal(nb::cast<nb::tuple>(price(k)));
                };
                nb::gil_scoped_release unlocked;
                return self.advance(n, tol, additions, min_novelty, price_of, noise_floor, follows, every, due);
            },
            "n"_a, "tol"_a, "additions"_a, "min_novelty"_a, "price"_a, "noise_floor"_a, "follows"_a, "every"_a,
            "due"_a)
        .def("move", &State::move, "j"_a, "alpha"_a, unlocked)
        .def("set_scales", [](State &self, nb::handle alpha, double noise) {
            const Vector inside = numbers(alpha);
            nb::gil_scoped_release unlocked;
            self.set_scales(inside, noise);
        }, "alpha"_a, "noise"_a)
        .def("joint_step", &State::joint_step, "tol"_a, "noise_floor"_a, unlocked)
        .def("rescale", &State::rescale, "noise_floor"_a)
        .def("fresh_objective", &State::fresh_objective, unlocked)
        .def("refresh", &State::refresh, unlocked)
        .def_ro("active", &State::active)
        .def_ro("noise", &State::noise)
        .def_ro("age", &State::age)
        .def_ro("evidence", &State::evidence)
        .def_ro("objective", &State::objective)
        .def_ro("outside_gain", &State::outside_gain)
        .def_ro("residual", &State::residual)
        .def_ro("gamma_sum", &State::gamma_sum)
        .def_prop_ro("penalty", &State::penalty)
        .def_prop_ro("variance_sum", &State::variance_sum)
        .def_prop_ro("n_active", [](const State &self) { return self.active.size(); })
        .def_prop_ro("n_units", [](const State &self) { return self.active.size(); })  // no groups here
        .def_prop_ro("jitter", [](const State &self) { return self.posterior.jitter; })
        .def_prop_ro("alpha_inside", [](const State &self) { return array(self.alpha_inside()); })
        .def_prop_ro("alpha", [](const State &self) { return array(self.alpha); })
        .def_prop_ro("S", [](const State &self) { return array(self.S); })
        .def_prop_ro("Q", [](const State &self) { return array(self.Q); })
        .def_prop_ro("mean", [](const State &self) { return array(self.posterior.mean); })
        .def_prop_ro("Sigma", [](const State &self) { return array(self.posterior.Sigma.at, self.active.size(), 2); })
        .def_prop_ro("root", &lower_root)
        .def_prop_ro("logdet", &logdet)
        .def_prop_ro("gram", &gram)
        .def_prop_ro("copies", [](const State &self) { return array(self.copies, self.copies.size(), 1); });
    nb::class_<Flips>(module, "Flips")
        .def(
            "__init__",
            [](Flips *self, nb::object gram, Rows rows, nb::handle projection, nb::handle log_prior, double n,
               nb::handle spread, bool shares_noise, double steepest, double rounding) {
                new (self) Flips(gram_rows(gram), rows.data(), rows.shape(0), by_columns(projection), numbers(log_prior), n, numbers(spread),
                                 shares_noise, steepest, rounding);
                self->has_outputs = nb::cast<size_t>(nb::getattr(projection, "ndim")) > 1;
            },
            "gram"_a, "rows"_a, "projection"_a, "log_prior"_a, "n"_a, "spread"_a, "shares_noise"_a = false,
            nb::kw_only(), "steepest"_a,
            "rounding"_a, nb::keep_alive<1, 3>())
        .def(
            "place",
            [](Flips &self, Indices active, Rows gram, Rows inner, bool by_rows, nb::handle s, nb::handle q,
               nb::handle rest, double c, nb::handle log_odds) {
                self.active = std::move(active), self.by_rows = by_rows, self.c = c;
                self.rest = self.has_outputs ? numbers(rest) : Vector{nb::cast<double>(rest)};
                self.s = numbers(s), self.q = by_columns(q), self.log_odds = numbers(log_odds);
                self.gram.clear();
                for (size_t k = 0; k < gram.shape(0); ++k)
                    self.gram.emplace_back(gram.data() + k * gram.shape(1), gram.data() + (k + 1) * gram.shape(1));
                self.inner.size = inner.shape(0);
                self.inner.at.assign(inner.data(), inner.data() + inner.size());
                std::fill(self.inside.begin(), self.inside.end(), 0);
                for (const auto j : self.active) self.inside[j] = 1;
                self.weigh();
            },
            "active"_a, "gram"_a, "inner"_a, "by_rows"_a, "s"_a, "q"_a, "rest"_a, "c"_a, "log_odds"_a)
        .def("toggle", &Flips::toggle, "j"_a, unlocked)
        .def("run", [](Flips &self, nb::handle choices, nb::handle picks) {
            const Vector choose = numbers(choices), pick = numbers(picks);
            nb::gil_scoped_release unlocked;
            return self.run(choose, pick);
        }, "choices"_a, "picks"_a)
        .def("walk", [](Flips &self, nb::handle choices, nb::handle tests) {
            const Vector choose = numbers(choices), test = numbers(tests);
            nb::gil_scoped_release unlocked;
            self.walk(choose, test);
        }, "choices"_a, "tests"_a)
        .def_ro("active", &Flips::active)
        .def_ro("picked", &Flips::picked)
        .def_ro("total", &Flips::total)
        .def_ro("log_total", &Flips::log_total)
        .def_prop_ro("rest", [](const Flips &self) { return of_outputs(self, self.rest); })
        .def_prop_ro("s", [](const Flips &self) { return array(self.s); })
        .def_prop_ro("q", [](const Flips &self) { return of_weights(self, self.q); })
        .def_prop_ro("p", [](const Flips &self) { return array(self.p); })
        .def_prop_ro("weight", [](const Flips &self) { return of_weights(self, self.weight); })
        .def_prop_ro("variance", [](const Flips &self) { return of_weights(self, self.variance); })
        .def_prop_ro("log_in", [](const Flips &self) { return array(self.log_in); })
        .def_prop_ro("eagerness", [](const Flips &self) { return array(self.eagerness); })
        .def_prop_ro("sums", [](const Flips &self) {
            const Sums &sums = self.sums;
            return nb::make_tuple(array(sums.included), of_weights(self, sums.first), of_weights(self, sums.second),
                                  array(sums.sizes), of_outputs(self, sums.noise), sums.total);
        });
}
