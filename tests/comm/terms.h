// Numbers for tests of collectives: every rank can make every rank's, and sum them by itself.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "skein/comm/tree_sum.h"
#include "skein/tensor/dtype.h"

namespace skein::comm_test {

using Bytes = std::vector<char>;

template <typename T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
  return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
}

// Magnitudes from 2^-8 to 2^7: the order of a sum shows in its last bits.
inline Bytes term(DType dtype, int64_t elements, uint64_t seed) {
  Bytes bytes(static_cast<size_t>(elements * size_of(dtype)));
  for (int64_t i = 0; i < elements; ++i) {
    const uint64_t bits = scramble(scramble(seed + 1) + static_cast<uint64_t>(i));
    const double fraction = static_cast<double>(static_cast<int64_t>(bits)) * 0x1p-63;
    const double value = std::ldexp(fraction, static_cast<int>(bits % 16) - 8);
    char* at = bytes.data() + i * size_of(dtype);
    const auto put = [&](auto x) { std::memcpy(at, &x, sizeof x); };
    if (dtype == DType::kF32) put(static_cast<float>(value));
    if (dtype == DType::kF64) put(value);
    if (dtype == DType::kI32) put(static_cast<int32_t>(bits >> 32));
    if (dtype == DType::kBF16) put(bfloat16(static_cast<float>(value)));
  }
  return bytes;
}

// In place, gap 1, 2, 4, …: the definition of the order, element by element. Pairs come first.
template <typename Acc, typename T>
std::vector<T> gap_doubling(const std::vector<Bytes>& terms, TreePairs pairs) {
  std::vector<std::vector<T>> values;
  for (const Bytes& bytes : terms) values.push_back(values_of<T>(bytes));
  std::vector<T> result(values[0].size());
  for (size_t i = 0; i < result.size(); ++i) {
    std::vector<Acc> a;
    for (const std::vector<T>& term : values) a.push_back(static_cast<Acc>(term[i]));
    for (int64_t pair = pairs.first; pair < pairs.first + pairs.count; ++pair) {
      a[static_cast<size_t>(pair)] =
          a[static_cast<size_t>(pair)] + a[static_cast<size_t>(pair) + 1];
      a.erase(a.begin() + pair + 1);
    }
    for (size_t gap = 1; gap < a.size(); gap *= 2) {
      for (size_t j = 0; j + gap < a.size(); j += 2 * gap) a[j] = a[j] + a[j + gap];
    }
    result[i] = static_cast<T>(a[0]);
  }
  return result;
}

inline Bytes serial_sum(DType dtype, const std::vector<Bytes>& terms, TreePairs pairs = {}) {
  switch (dtype) {
    case DType::kF32:
      return bytes_of(gap_doubling<float, float>(terms, pairs));
    case DType::kF64:
      return bytes_of(gap_doubling<double, double>(terms, pairs));
    case DType::kI32:
      return bytes_of(gap_doubling<uint32_t, int32_t>(terms, pairs));
    case DType::kBF16:
      return bytes_of(gap_doubling<float, bfloat16>(terms, pairs));
  }
  return {};
}

}  // namespace skein::comm_test
