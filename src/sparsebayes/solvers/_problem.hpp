// The numbers of a problem, and what its search keeps them in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

namespace sequential {

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

    void grow() {
        Square wider{Vector((size + 1) * (size + 1)), size + 1};
        for (size_t j = 0; j < size; ++j) std::copy_n(&at[j * size], size, &wider.at[j * wider.size]);
        std::swap(*this, wider);
    }

    void drop(size_t k) {
        Square left{Vector((size - 1) * (size - 1)), size - 1};
        for (size_t j = 0, to = 0; j < size; ++j)
            if (j != k) {
                for (size_t i = 0, row = 0; i < size; ++i)
                    if (i != k) left(row++, to) = (*this)(i, j);
                ++to;
            }
        std::swap(*this, left);
    }
};

// solvers/problem.py, as far as the search asks; what is not numbers stays with Python.
struct Problem {
    double n_weighted, n, energy, price, a, c, d, rate;
    bool flat_intercept;
    Vector b, column_energy, projection;
    std::function<void(std::int64_t, const std::function<Indices()> &, double *)> gram_column;
    std::function<double(std::int64_t)> total_price;
    std::function<double(const Indices &, const Vector &)> residual_by_rows;

    size_t n_columns() const { return projection.size(); }
};

struct Constants {
    double copy, noise_floor;
    std::int64_t near, prefetch;
    Vector jitter_ladder;
};

}  // namespace sequential
