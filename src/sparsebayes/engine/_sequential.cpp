// The search of sequential.py, compiled: same picks, same numbers.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>
#include <string>
#include <tuple>

#include "_candidates.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sequential {

using Array = nb::ndarray<const double, nb::ndim<1>, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;
using Info = std::tuple<double, double, size_t, double, const char *>;  // the fields of loop.Info

struct Settings {
    std::int64_t refresh_every, eager, settle_every;
};

class Search {
public:
    Candidates state;

    Search(Problem problem, Constants constants, const Indices &active, const Vector &alpha, double noise,
           Settings settings_)
        : state(std::move(problem), std::move(constants), active, alpha, noise),
          settings(settings_) {
    }

    // Go on under these limits (Limits in sequential.py).
    void begin(double tol_, bool hold_noise_, std::int64_t max_additions, double fresh_, bool joint_) {
        tol = tol_, hold_noise = hold_noise_, left = max_additions, fresh = fresh_, joint = joint_;
        n_actions = age = 0;
    }

    // Steps until there is no more to gain, so many at most; but not for longer than Python may be kept waiting, which has
    // interrupts to look at.
    std::vector<Info> steps(std::int64_t at_most) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
        std::vector<Info> made;
        do {
            made.push_back(step());
        } while (--at_most > 0 && std::get<1>(made.back()) > tol && std::isfinite(std::get<0>(made.back())) &&
                 std::chrono::steady_clock::now() < until);
        return made;
    }

private:
    Settings settings;
    double tol = 0.0, fresh = 0.0;
    bool hold_noise = false, joint = false;
    std::int64_t left = 0, n_actions = 0;
    std::int64_t age = 0;  // actions since all was computed from scratch, where there are joint steps

    Info step() {
        const double before = state.objective;
        const char *action = "noise";
        const Move best = best_move();
        const double to_gain = std::max(best.gain, hold_noise ? 0.0 : state.noise_gain());
        if (best.gain > tol) {
            action = make(best);
            ++n_actions;
        }
        const bool due = n_actions % settings.refresh_every == 0 || best.gain <= tol;
        if (joint && best.gain > tol && (hold_noise || n_actions > settings.eager))
            go_on();
        else if (hold_noise && due)
            state.refresh();
        else if (!hold_noise && to_gain > tol && (due || n_actions <= settings.eager))
            state.update_noise();
        return {before, to_gain, state.active.size(), state.posterior.jitter, action};
    }

    void go_on() {
        if (!hold_noise) state.rescale();
        if (++age == settings.settle_every) settle();
    }

    void settle() {
        state.settle(tol, hold_noise);
        age = 0;
    }

    // The best change of a single precision, given all others.
    Move best_move() {
        const Move best = best_near();
        if (best.gain > std::max(tol, state.beyond)) return best;
        if (best.gain <= tol && age > 0) settle();  // before it ends, all precisions together
        state.survey();
        return best_near();
    }

    // The same among those in the model and near it; of equal ones the first, as in NumPy.
    Move best_near() {
        Move best;
        const auto consider = [&best](const Move &move) {
            if (move.gain > best.gain || (move.gain == best.gain && move.j < best.j)) best = move;
        };
        const double price = state.price_inside();
        for (size_t place = 0; place < state.active.size(); ++place) consider(move_inside(place, price));
        double most = 0.0;  // with a flat prior the largest q²/s brings most: only that needs its logarithm
        for (const auto j : state.near) {
            if (left <= 0 || !std::isinf(state.alpha[j]) || state.is_copy(j) || !(state.S[j] > 0)) continue;
            if (state.S[j] < fresh / state.noise * state.problem.column_energy[j]) continue;
            const double ratio = state.Q[j] * state.Q[j] / state.S[j];
            if (state.is_flat() && ratio < most) continue;
            consider(state.entry(j));
            most = std::max(most, ratio);
        }
        return best;
    }

    // A basis is worth the evidence it brings at its own best precision; in the model belongs what is worth its price.
    Move move_inside(size_t place, double price) const {
        const std::int64_t j = state.active[place];
        const double s = state.s_inside(place), q = state.q_inside(place), at = state.alpha[j];
        const double a = state.problem.a, b = state.problem.b[j], pull = state.pull();
        const double to = rules::candidate(s, q, a, b, pull);
        const double worth = rules::gain(to, s, q, pull), present = rules::gain(at, s, q, pull);
        if (worth > price) {
            const double prior = rules::log_hyper_prior(to, a, b) - rules::log_hyper_prior(at, a, b);
            return {worth - present + prior, to, j, place};
        }
        return {price - std::min(present, worth), OUT, j, place};
    }

    // Does it, and keeps the objective, in which there is no price but the hyper-prior of what is in.
    const char *make(const Move &move) {
        const double a = state.problem.a, b = state.problem.b[move.j], was = state.alpha[move.j];
        if (std::isinf(was)) {
            state.objective += move.gain + state.price_outside() + rules::log_hyper_prior(move.alpha, a, b);
            state.add(move.j, move.alpha);
            --left;
            return "add";
        }
        if (std::isinf(move.alpha)) {
            state.objective += move.gain - state.price_inside() - rules::log_hyper_prior(was, a, b);
            state.remove(move.place);
            return "delete";
        }
        state.objective += move.gain;
        state.reestimate(move.place, move.alpha);
        return "re-estimate";
    }
};

Vector numbers(nb::handle array) {
    const Array view = nb::cast<Array>(array);
    Vector copy(view.shape(0));
    for (size_t m = 0; m < copy.size(); ++m) copy[m] = view.data()[static_cast<std::int64_t>(m) * view.stride(0)];
    return copy;
}

// An array of NumPy's that takes the numbers over; of several columns, column by column.
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

// Where the search stands, surveyed: what a Candidates of candidates.py knows.
nb::dict standing(Search &search) {
    Candidates &state = search.state;
    state.survey();
    const size_t M = state.active.size(), D = state.problem.n_columns();
    Square root = state.posterior.root;
    for (size_t k = 0; k < M; ++k) std::fill_n(&root(0, k), k, 0.0);
    Vector gram;
    gram.reserve(M * D);
    for (const Vector &column : state.gram) gram.insert(gram.end(), column.begin(), column.end());
    nb::dict known;
    known["active"] = state.active, known["alpha"] = array(state.alpha), known["noise"] = state.noise;
    known["S"] = array(state.S), known["Q"] = array(state.Q), known["mean"] = array(state.posterior.mean);
    known["Sigma"] = array(state.posterior.Sigma.at, M, 2), known["root"] = array(root.at, M, 2);
    double logdet = -2 * state.posterior.half_logdet;
    for (const double each : state.alpha_inside()) logdet -= std::log(each);
    known["logdet"] = logdet, known["jitter"] = state.posterior.jitter;
    const rules::NoiseTerms &terms = state.terms;
    known["noise_terms"] = nb::make_tuple(terms.residual, terms.noise, terms.gamma_sum, terms.n, terms.c, terms.d);
    known["evidence"] = state.evidence, known["objective"] = state.objective;
    known["gram"] = array(std::move(gram), D, 2), known["copies"] = array(state.copies, D, 1);
    return known;
}

// Φᵀφ_j: from the whole Gram matrix where there is one, or else asked of the rows, with the interpreter's lock.
std::function<Vector(std::int64_t, const std::function<Indices()> &)> gram_columns(nb::object rows) {
    const nb::object whole = nb::getattr(rows, "known_gram", nb::none());
    if (!whole.is_none())
        return [gram = nb::cast<Matrix>(whole)](std::int64_t j, const std::function<Indices()> &) {
            Vector column(gram.shape(1));
            const double *row = gram.data() + j * gram.stride(0);
            for (size_t m = 0; m < column.size(); ++m) column[m] = row[static_cast<std::int64_t>(m) * gram.stride(1)];
            return column;
        };
    return [ask = nb::object(rows.attr("gram_column"))](std::int64_t j, const std::function<Indices()> &ahead) {
        nb::gil_scoped_acquire lock;
        return numbers(ask(j, nb::cpp_function([&ahead] { return ahead(); })));
    };
}

// Reads a GaussianProblem. What only its rows can answer is asked of it, with the interpreter's lock.
Problem read_problem(nb::object problem) {
    const auto number = [&](const char *name) { return nb::cast<double>(problem.attr(name)); };
    Problem read;
    read.n_weighted = number("n_weighted"), read.n = number("n"), read.energy = number("energy");
    read.price = number("price"), read.a = number("a"), read.c = number("c"), read.d = number("d");
    read.rate = number("rate");
    read.flat_intercept = PyObject_IsTrue(nb::object(problem.attr("flat_intercept")).ptr()) == 1;
    read.b = numbers(problem.attr("b"));
    read.column_energy = numbers(problem.attr("column_energy"));
    read.projection = numbers(problem.attr("projection"));
    read.gram_column = gram_columns(problem.attr("rows"));
    read.total_price = [ask = nb::object(problem.attr("total_price"))](std::int64_t n_kept) {
        nb::gil_scoped_acquire lock;
        return nb::cast<double>(ask(n_kept));
    };
    read.residual_by_rows = [ask = nb::object(problem.attr("residual_by_rows"))](const Indices &active,
                                                                                const Vector &mean) {
        nb::gil_scoped_acquire lock;
        return nb::cast<double>(ask(active, mean));
    };
    return read;
}

}  // namespace sequential

NB_MODULE(_sequential, module) {
    using namespace sequential;
    blas::load_all();
    nb::exception<NotPositiveDefinite>(module, "NotPositiveDefinite",
                                       nb::module_::import_("numpy.linalg").attr("LinAlgError"));
    nb::class_<Search>(module, "Search")
        .def(
            "__init__",
            [](Search *self, nb::object problem, Indices active, Vector alpha, double noise, double copy,
               std::int64_t refresh, std::int64_t eager, std::int64_t settle, std::int64_t near, std::int64_t prefetch,
               double noise_floor, Vector jitter_ladder) {
                Problem read = read_problem(problem);
                Constants constants{copy, noise_floor, near, prefetch, std::move(jitter_ladder)};
                new (self) Search(std::move(read), std::move(constants), active, alpha, noise,
                                  {refresh, eager, settle});
            },
            "problem"_a, "active"_a, "alpha"_a, "noise"_a, nb::kw_only(), "copy"_a, "refresh"_a, "eager"_a, "settle"_a,
            "near"_a, "prefetch"_a, "noise_floor"_a, "jitter_ladder"_a)
        .def("begin", &Search::begin, "tol"_a, "hold_noise"_a, "max_additions"_a, "fresh"_a, "joint"_a)
        .def("steps", &Search::steps, "at_most"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("standing", &standing);
}
