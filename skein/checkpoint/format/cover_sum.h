// Checks whether boxes, in any number and order, cover another box exactly once, in one pass and
// with 8 bytes of state.
//
//   sum over boxes of prod over dims of (r(dim, end) - r(dim, begin))  mod 2^61 - 1
//
// r is a random number for each dim and index, drawn anew in each process. Two sets of boxes that
// cover every element equally often have equal sums, since the corners where boxes meet cancel. Two
// sets that do not have different polynomials in the r's, which agree with a probability of at most
// rank / 2^61, so nobody can construct a file that passes.
//
// Source   Schwartz 1980, Zippel 1979
#pragma once

#include <cstdint>
#include <span>

namespace skein {

class CoverSum {
 public:
  void add(std::span<const int64_t> begin, std::span<const int64_t> sizes);
  void add(int64_t begin, int64_t end);  // of one dim
  bool operator==(const CoverSum&) const = default;

 private:
  uint64_t sum_ = 0;
};

}  // namespace skein
