// Hashes of texts that can be put together: polynomials over bytes modulo 2^61 - 1.
//
// Formula  hash(b_0 ... b_n-1) = sum of (b_i + 1) base^(n-1-i);  hash(xy) = hash(x) base^|y| + hash(y)
// Cost     a multiplication a byte, or a sequence
// Source   Karp and Rabin, "Efficient randomized pattern-matching algorithms", 1987
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace skein {

class TextHash {
 public:
  static constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  static constexpr uint64_t kBase = 0x1b8f4d2e9c3a5d71 % kPrime;

  static uint64_t of(std::string_view text) {
    uint64_t hash = 0;
    for (const char byte : text) hash = append(hash, static_cast<uint8_t>(byte));
    return hash;
  }
  static uint64_t append(uint64_t hash, uint8_t byte) {
    return add(multiply(hash, kBase), uint64_t{byte} + 1);
  }
  static uint64_t multiply(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return add(static_cast<uint64_t>(product & kPrime), static_cast<uint64_t>(product >> 61));
  }
  static uint64_t add(uint64_t a, uint64_t b) {
    const uint64_t sum = a + b;
    return sum >= kPrime ? sum - kPrime : sum;
  }
  static uint64_t subtract(uint64_t a, uint64_t b) { return a >= b ? a - b : a + kPrime - b; }

  // base^exponent
  uint64_t power(uint64_t exponent) const {
    uint64_t result = powers_[exponent % powers_.size()];
    uint64_t square = power_of_table_;
    for (uint64_t left = exponent / powers_.size(); left > 0; left >>= 1) {
      if ((left & 1) != 0) result = multiply(result, square);
      square = multiply(square, square);
    }
    return result;
  }

  TextHash() {
    uint64_t power = 1;
    for (uint64_t& entry : powers_) {
      entry = power;
      power = multiply(power, kBase);
    }
    power_of_table_ = power;
  }

 private:
  std::array<uint64_t, 1024> powers_;
  uint64_t power_of_table_;  // base^1024
};

}  // namespace skein
