#include "skein/checkpoint/format/cover_sum.h"

#include <random>

namespace skein {
namespace {

constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

// The finaliser of splitmix64 (Steele, Lea and Flood 2014).
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t random_word() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

uint64_t random_of(uint64_t dim, int64_t index) {
  static const uint64_t first = random_word(), second = random_word();
  const uint64_t word = mix(second ^ mix(first ^ mix(static_cast<uint64_t>(index)) ^ dim));
  return word % kPrime;
}

uint64_t multiply(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b % kPrime);
}

uint64_t subtract(uint64_t a, uint64_t b) { return a >= b ? a - b : a + kPrime - b; }

}  // namespace

void CoverSum::add(std::span<const int64_t> begin, std::span<const int64_t> sizes) {
  uint64_t product = 1;
  for (size_t dim = 0; dim < begin.size(); ++dim) {
    const uint64_t extent =
        subtract(random_of(dim, begin[dim] + sizes[dim]), random_of(dim, begin[dim]));
    product = multiply(product, extent);
  }
  sum_ = (sum_ + product) % kPrime;
}

void CoverSum::add(int64_t begin, int64_t end) {
  const int64_t size = end - begin;
  add({&begin, 1}, {&size, 1});
}

}  // namespace skein
