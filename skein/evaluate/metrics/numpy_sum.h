// Sums in the order in which numpy and Python add, so that results are the same double.
//
//   numpy_sum    numpy.sum of contiguous numbers: pairwise, in blocks of 128 with 8 partial sums
//   python_sum   sum() of CPython 3.11: from left to right. Since 3.12, sum() of Python's floats
//                corrects errors, and lm-evaluation-harness on it can differ in the last bits.
#pragma once

#include <cmath>
#include <span>

namespace skein {

inline double numpy_sum(std::span<const double> values) {
  const size_t count = values.size();
  if (count < 8) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
  }
  if (count > 128) {
    const size_t half = count / 2 - count / 2 % 8;
    return numpy_sum(values.first(half)) + numpy_sum(values.subspan(half));
  }
  double partial[8];
  for (size_t i = 0; i < 8; ++i) partial[i] = values[i];
  size_t at = 8;
  for (; at + 8 <= count; at += 8) {
    for (size_t i = 0; i < 8; ++i) partial[i] += values[at + i];
  }
  double sum = ((partial[0] + partial[1]) + (partial[2] + partial[3])) +
               ((partial[4] + partial[5]) + (partial[6] + partial[7]));
  for (; at < count; ++at) sum += values[at];
  return sum;
}

inline double python_sum(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

// value ** 2 of Python: the C library's pow, which can differ from value * value by one bit.
inline double python_square(double value) {
  static const volatile double kTwo = 2;  // or compilers write value * value
  return std::pow(value, kTwo);
}

}  // namespace skein
