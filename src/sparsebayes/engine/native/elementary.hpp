// Logarithm and exponential without branches, so that compilers can work on several numbers at once.
#pragma once

#include <cstdint>
#include <cstring>

// Loops with this mark are compiled for wider registers too; the processor decides which form runs.
#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define FOR_WIDE_REGISTERS __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define FOR_WIDE_REGISTERS
#endif

namespace elementary {

inline std::uint64_t bits_of(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof x);
    return bits;
}

inline double number_of(std::uint64_t bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// log 2 in two parts, of which the first has so few digits that its multiples are exact.
constexpr double LOG2 = 0x1.62e42fefa39efp-1, LOG2_HIGH = 0x1.62e42fee00000p-1, LOG2_LOW = 0x1.a39ef35793c76p-33;

// log x of a positive number that is not subnormal: x = 2^k m with m in [√½, √2), log m = 2 artanh((m - 1)/(m + 1)).
inline double log(double x) {
    constexpr std::uint64_t ROOT_HALF = 0x3fe6a09e667f3bcd, OFFSET = 1024ull << 52;
    const std::uint64_t bits = bits_of(x), k = (bits - ROOT_HALF + OFFSET) >> 52;
    const double m = number_of(bits - (k << 52) + OFFSET);
    const double power = number_of(k | 0x4330000000000000) - (0x1p52 + 1024);  // k as a number
    const double s = (m - 1) / (m + 1), z = s * s;
    double sum = 1.0 / 21;  // z ≤ 0.0295: further terms are below rounding
    sum = sum * z + 1.0 / 19, sum = sum * z + 1.0 / 17, sum = sum * z + 1.0 / 15, sum = sum * z + 1.0 / 13;
    sum = sum * z + 1.0 / 11, sum = sum * z + 1.0 / 9, sum = sum * z + 1.0 / 7, sum = sum * z + 1.0 / 5;
    sum = sum * z + 1.0 / 3;
    return power * LOG2_HIGH + (power * LOG2_LOW + 2 * s * z * sum + 2 * s);
}

// exp x for |x| ≤ 700: x = k log 2 + r with |r| ≤ ½ log 2, and Taylor's series for r.
inline double exp(double x) {
    constexpr double ROUND = 0x1.8p52;  // adding it leaves the nearest integer in the last bits
    const double shifted = x * (1 / LOG2) + ROUND, k = shifted - ROUND;
    const double r = (x - k * LOG2_HIGH) - k * LOG2_LOW;
    double sum = 1.0 / 6227020800;  // 1/13!
    sum = sum * r + 1.0 / 479001600, sum = sum * r + 1.0 / 39916800, sum = sum * r + 1.0 / 3628800;
    sum = sum * r + 1.0 / 362880, sum = sum * r + 1.0 / 40320, sum = sum * r + 1.0 / 5040, sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120, sum = sum * r + 1.0 / 24, sum = sum * r + 1.0 / 6, sum = sum * r + 0.5;
    sum = sum * r + 1.0, sum = sum * r + 1.0;
    return number_of(bits_of(sum) + (bits_of(shifted) << 52));
}

}  // namespace elementary
