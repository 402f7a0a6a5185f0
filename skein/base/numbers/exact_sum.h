// Sums of f64 that do not depend on the order of their terms, nor on which rank adds which of them.
//
// Method   kBins bins of 24 bits cover 2^-298 (the square of the least f32) to 2^278 (1024 squares
//          of the greatest, and more). Bin k holds the parts of all terms that are multiples of its
//          unit, 2^(24 k - 298), and at most 2^24 units each, so that every addition is exact for
//          2^29 terms. Accumulators, and partial sums of ranks, are added bin by bin, as exactly
// Errors   a term that is not finite, or is 2^278 or more, makes the total NaN; what of a term is
//          below 2^-299 is dropped
// Cost     about 10 ns a term
// Source   Demmel and Nguyen, "Parallel Reproducible Summation", IEEE Trans. Computers 2015
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace skein::exact_sum {

inline constexpr int kBins = 24;
inline constexpr int kBinBits = 24;
inline constexpr int kLeastExponent = -298;

constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// `bins` holds kBins numbers, all zero at the start.
constexpr void add(double* bins, double term) {
  if (!((term < 0 ? -term : term) < power_of_two(kLeastExponent + kBins * kBinBits))) {
    bins[kBins - 1] = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(term) >> 52 & 0x7ff) - 1023;
  const int above = exponent - kLeastExponent;
  for (int bin = above < 0 ? 0 : above / kBinBits; bin >= 0 && term != 0; --bin) {
    // Adding 1.5 2^52 units leaves no bits below the unit: it rounds to a multiple.
    const double anchor = 1.5 * power_of_two(kLeastExponent + bin * kBinBits + 52);
    const double part = (term + anchor) - anchor;
    bins[bin] += part;
    term -= part;
  }
}

constexpr void add_all(double* bins, const double* others) {
  for (int bin = 0; bin < kBins; ++bin) bins[bin] += others[bin];
}

// Adds the bins from the least up, so that equal bins give equal bits. NaN if a term was not
// finite.
inline double total(const double* bins) {
  double sum = 0;
  for (int bin = 0; bin < kBins; ++bin) sum += bins[bin];
  return std::isfinite(sum) ? sum : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace skein::exact_sum
