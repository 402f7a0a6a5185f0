// The random numbers of Python's `random.Random(seed)`, so that few-shot examples are those that
// lm-evaluation-harness draws.
//
// Formula  MT19937, seeded by init_by_array with the 32-bit words of the seed; whole numbers below
//          n by rejection of getrandbits(bit length of n)
// Errors   kInvalid for a sample that is larger than what it is drawn from
// Source   CPython 3.11, Modules/_randommodule.c and Lib/random.py; Matsumoto and Nishimura,
//          "Mersenne Twister", 1998
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace skein {

class PythonRandom {
 public:
  explicit PythonRandom(uint64_t seed);

  double random();                  // in [0, 1), 53 bits
  uint32_t getrandbits(int count);  // 1 to 32
  int64_t randbelow(int64_t n);     // in [0, n); n from 1 to 2^32
  // random.sample(range(n), k), without replacement.
  std::vector<int64_t> sample(int64_t n, int64_t k);
  // random.choices(range(n), k=k), with replacement.
  std::vector<int64_t> choices(int64_t n, int64_t k);
  // random.shuffle(list(range(n))).
  std::vector<int64_t> shuffled(int64_t n);

 private:
  uint32_t next();

  static constexpr int kWords = 624;
  std::array<uint32_t, kWords> state_{};
  int at_ = kWords;
};

}  // namespace skein
