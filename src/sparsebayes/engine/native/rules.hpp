// What a single precision should be and what it brings: core/scales.py and core/evidence.py, for one basis.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace rules {

constexpr double TINY = std::numeric_limits<double>::min();
constexpr double BELOW_ONE = 1 - 4 * std::numeric_limits<double>::epsilon();  // more below one than products are rounded
constexpr double OUT = std::numeric_limits<double>::infinity();  // the precision of what is not in the model

// Evidence (nats) of a basis at precision α against leaving it out: ½[log α/(α+s) + q²/(α+s)], less the part of a
// Laplace prior.
inline double gain(double alpha, double s, double q, double strength = 0.0) {
    if (std::isinf(alpha)) return 0.0;
    const double total = std::max(alpha + s, TINY);
    return 0.5 * (std::log(alpha / total) + q * q / total - strength / alpha);
}

// a log x - b x, the Gamma(a, b) hyper-prior of a precision as a density of its logarithm.
inline double log_hyper_prior(double x, double a, double b) {
    return a == 0.0 && b == 0.0 ? 0.0 : a * std::log(x) - b * x;
}

// A root of y³ + c2 y² + c1 y + c0 (c0 < 0): of three real ones that of largest modulus, otherwise the only one.
// Newton's method takes Cardano's answer, which may have cancelled, to full precision inside a bracket.
inline double leading_root(double c2, double c1, double c0) {
    const double third = c2 / 3, p = c1 / 3 - third * third, q = third * (third * third - c1 / 2) + c0 / 2;
    const double discriminant = q * q + p * p * p;
    double y;
    if (discriminant > 0) {
        const double u = -std::copysign(std::cbrt(std::abs(q) + std::sqrt(discriminant)), q);
        y = u - p / u - third;
    } else {
        const double radius = std::sqrt(-p), cube = std::max(radius * radius * radius, TINY);
        const double angle = std::acos(std::clamp(-q / cube, -1.0, 1.0));
        const double right = 2 * radius * std::cos(angle / 3) - third;
        const double left = -2 * radius * std::cos((3.14159265358979323846 - angle) / 3) - third;
        y = std::abs(left) > std::abs(right) ? left : right;
    }
    const auto value = [&](double x) { return ((x + c2) * x + c1) * x + c0; };
    const bool alone = discriminant > 0;  // then it is positive, and f < 0 to the left of it
    double low = 0.0, high = 1 + std::max({std::abs(c2), std::abs(c1), std::abs(c0)});
    if (alone && !(y > low && y < high)) y = 0.5 * high;
    // Beside a bracket three steps polish Cardano's digits; within one, a hundred halvings end at the rounding of y.
    for (int k = 0; k < (alone ? 100 : 3); ++k) {
        const double f = value(y), slope = (3 * y + 2 * c2) * y + c1;
        (f < 0 ? low : high) = y;
        double next = y - f / slope;
        if (alone && !(next > low && next < high)) next = 0.5 * (low + high);
        if (!std::isfinite(next)) break;
        const bool settled = std::abs(next - y) <= 4e-16 * std::abs(y);  // two units in the last place
        y = next;
        if (settled) break;
    }
    return y;
}

// Mode of gain + a log α - b α. In y = s/α, with r = q²/s and b' = b s, its slope vanishes where
// (1 + 2a) y³ + (1 - r + 4a - 2b') y² + (2a - 4b') y - 2b' = 0; the best of the positive roots is taken.
inline double candidate_with_prior(double s, double q, double a, double b) {
    const double r = q * q / s, rate = b * s, lead = 1 + 2 * a;
    const double c2 = (1 - r + 4 * a - 2 * rate) / lead, c1 = (2 * a - 4 * rate) / lead, c0 = -2 * rate / lead;
    // The other two roots have the product -c0/y and the sum (c1 - product)/y; with a flat rate one root is zero.
    const double first = c0 < 0 ? leading_root(c2, c1, c0) : 0.0;
    const double product = c0 < 0 ? -c0 / first : c1, sum = c0 < 0 ? (c1 - product) / first : -c2;
    const double inner = 0.25 * sum * sum - product;
    const double large = 0.5 * sum + std::copysign(std::sqrt(std::max(inner, 0.0)), sum);
    double best = OUT, most = -OUT;
    const auto consider = [&](double y) {
        if (!(y > TINY)) return;
        const double x = 1 / y, value = gain(x, 1.0, std::sqrt(r)) + a * std::log(x) - rate * x;
        if (value > most) best = s * x, most = value;
    };
    consider(first);
    if (inner >= 0) {
        consider(large);
        consider(product / large);
    }
    return best;
}

// The precision of largest gain given everything else. Flat hyper-prior: α = s²/(q² - s) when q² > s.
inline double ard_candidate(double s, double q, double a, double b) {
    if (!(s > 0)) return OUT;
    if (a != 0.0 || b != 0.0) return candidate_with_prior(s, q, a, b);
    const double excess = q * q - s;
    return excess > 0 ? s * s / excess : OUT;
}

// The same under a Laplace prior: the precision of largest gain - ½ strength/α, when q² - s > strength.
inline double laplace_candidate(double s, double q, double strength) {
    const double excess = q * q - s - strength;
    if (!(excess > 0 && s > 0)) return OUT;
    return 0.5 * s * (s + 2 * strength + std::sqrt(s * s + 4 * strength * q * q)) / excess;
}

inline double candidate(double s, double q, double a, double b, double strength) {
    return strength != 0.0 ? laplace_candidate(s, q, strength) : ard_candidate(s, q, a, b);
}

}  // namespace rules
