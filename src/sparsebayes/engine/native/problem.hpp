// A least-squares problem, and the containers of its state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

namespace gaussian {

using std::size_t;
using Vector = std::vector<double>;
using Indices = std::vector<std::int64_t>;

struct NotPositiveDefinite : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A square matrix, column by column, that a row and a column can be added to and taken from.
struct Square {
    Vector at;
    size_t size = 0;

    double &operator()(size_t i, size_t j) { return at[i + j * size]; }
    double operator()(size_t i, size_t j) const { return at[i + j * size]; }

    void resize(size_t wanted) { at.resize(wanted * wanted), size = wanted; }

    // Both in place: fresh memory for each of thousands of actions would take longer than the actions.
    void grow() {
        const size_t wider = size + 1;
        at.resize(wider * wider);
        for (size_t j = size; j-- > 0;) {
            std::copy_backward(&at[j * size], &at[j * size] + size, &at[j * wider] + size);
            at[j * wider + size] = 0.0;
        }
        std::fill_n(&at[size * wider], wider, 0.0);
        size = wider;
    }

    void drop(size_t k) {
        double *to = at.data();
        for (size_t j = 0; j < size; ++j) {
            if (j == k) continue;
            const double *column = at.data() + j * size;
            to = std::copy(column, column + k, to);
            to = std::copy(column + k + 1, column + size, to);
        }
        resize(size - 1);
    }
};

// The numbers of engine/least_squares.py that the state needs; what only the rows can answer is asked of Python.
struct Problem {
    double n_weighted, n, energy;
    bool flat_intercept, positive, knows_gram;
    double a, rate, c, d;  // Gamma(a, b) on the precisions, rate of a Laplace prior, Gamma(c, d) on the noise precision
    double min_alpha;      // smallest precision
    Vector b, nats, column_energy, projection;
    std::function<Vector(std::int64_t, const std::function<Indices()> &)> gram_column;
    std::function<double(const Indices &, const Vector &)> residual_by_rows;

    size_t n_columns() const { return projection.size(); }
};

}  // namespace gaussian
