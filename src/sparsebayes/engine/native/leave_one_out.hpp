// The candidate that replaces the vector of each row that is left out: engine/leave_one_out.py, compiled.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace leave_one_out {

using Vector = std::vector<double>;
using std::size_t;

struct Replacements {
    Vector s, q, beyond;
};

// Of each of `rows` rows the candidate with the largest q²/s, of equal ones the first; s = ∞ where there is none.
inline Replacements best(size_t rows, const Vector &S, const Vector &Q, const Vector &least, const double *common,
                         const double *beyond, const Vector &var, const Vector &mean, const Vector &taken,
                         const Vector &residual) {
    Replacements found{Vector(rows, std::numeric_limits<double>::infinity()), Vector(rows), Vector(rows)};
    for (size_t i = 0; i < rows; ++i, common += S.size(), beyond += S.size()) {
        double most = -1.0;
        for (size_t m = 0; m < S.size(); ++m) {
            const double lifted = common[m] / var[i], lost = taken[i] * beyond[m];
            const double s = S[m] + common[m] * lifted - lost * beyond[m];
            if (!(least[m] < s)) continue;
            const double q = Q[m] + lifted * mean[i] - lost * residual[i];
            if (!(q * q > most * s)) continue;
            most = q * q / s;
            found.s[i] = s, found.q[i] = q, found.beyond[i] = beyond[m];
        }
    }
    return found;
}

}  // namespace leave_one_out
