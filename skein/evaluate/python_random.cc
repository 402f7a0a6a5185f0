#include "skein/evaluate/python_random.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_set>

#include "skein/base/error.h"

namespace skein {

PythonRandom::PythonRandom(uint64_t seed) {
  std::vector<uint32_t> key = {static_cast<uint32_t>(seed)};
  if (seed >> 32 != 0) key.push_back(static_cast<uint32_t>(seed >> 32));
  state_[0] = 19650218;
  for (uint32_t i = 1; i < kWords; ++i) {
    state_[i] = 1812433253U * (state_[i - 1] ^ state_[i - 1] >> 30) + i;
  }
  size_t i = 1, j = 0;
  const auto wrap = [&] {
    if (++i < kWords) return;
    state_[0] = state_[kWords - 1];
    i = 1;
  };
  for (size_t left = std::max<size_t>(kWords, key.size()); left > 0; --left) {
    state_[i] = (state_[i] ^ (state_[i - 1] ^ state_[i - 1] >> 30) * 1664525U) + key[j] +
                static_cast<uint32_t>(j);
    wrap();
    j = (j + 1) % key.size();
  }
  for (int left = kWords - 1; left > 0; --left) {
    state_[i] = (state_[i] ^ (state_[i - 1] ^ state_[i - 1] >> 30) * 1566083941U) -
                static_cast<uint32_t>(i);
    wrap();
  }
  state_[0] = 0x80000000U;
}

uint32_t PythonRandom::next() {
  constexpr int kShift = 397;
  if (at_ == kWords) {
    for (int i = 0; i < kWords; ++i) {
      const uint32_t y = (state_[i] & 0x80000000U) | (state_[(i + 1) % kWords] & 0x7fffffffU);
      state_[i] = state_[(i + kShift) % kWords] ^ y >> 1 ^ ((y & 1) != 0 ? 0x9908b0dfU : 0);
    }
    at_ = 0;
  }
  uint32_t y = state_[at_++];
  y ^= y >> 11;
  y ^= y << 7 & 0x9d2c5680U;
  y ^= y << 15 & 0xefc60000U;
  return y ^ y >> 18;
}

double PythonRandom::random() {
  const uint32_t high = next() >> 5, low = next() >> 6;
  return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0);
}

uint32_t PythonRandom::getrandbits(int count) { return next() >> (32 - count); }

int64_t PythonRandom::randbelow(int64_t n) {
  const int bits = std::bit_width(static_cast<uint64_t>(n));
  if (n < 1 || bits > 32)
    fail(ErrorCode::kInvalid, "a random number below {}: expected 1 to 2^32 - 1", n);
  int64_t drawn = getrandbits(bits);
  while (drawn >= n) drawn = getrandbits(bits);
  return drawn;
}

std::vector<int64_t> PythonRandom::sample(int64_t n, int64_t k) {
  if (k < 0 || k > n)
    fail(ErrorCode::kInvalid, "a sample of {} from {}: expected 0 to {}", k, n, n);
  int64_t most_in_a_list = 21;  // Python's own bound
  if (k > 5) {
    int64_t power = 4;  // 4 ** ceil(log(3 k, 4))
    while (power < 3 * k) power *= 4;
    most_in_a_list += power;
  }
  std::vector<int64_t> result;
  if (n <= most_in_a_list) {
    std::vector<int64_t> pool(static_cast<size_t>(n));
    std::iota(pool.begin(), pool.end(), 0);
    for (int64_t i = 0; i < k; ++i) {
      const auto at = static_cast<size_t>(randbelow(n - i));
      result.push_back(pool[at]);
      pool[at] = pool[static_cast<size_t>(n - i - 1)];
    }
    return result;
  }
  std::unordered_set<int64_t> selected;
  while (std::ssize(result) < k) {
    const int64_t drawn = randbelow(n);
    if (selected.insert(drawn).second) result.push_back(drawn);
  }
  return result;
}

std::vector<int64_t> PythonRandom::choices(int64_t n, int64_t k) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < k; ++i) {
    result.push_back(static_cast<int64_t>(random() * static_cast<double>(n)));
  }
  return result;
}

std::vector<int64_t> PythonRandom::shuffled(int64_t n) {
  std::vector<int64_t> list(static_cast<size_t>(n));
  std::iota(list.begin(), list.end(), 0);
  for (int64_t i = n - 1; i > 0; --i) {
    std::swap(list[static_cast<size_t>(i)], list[static_cast<size_t>(randbelow(i + 1))]);
  }
  return list;
}

}  // namespace skein
