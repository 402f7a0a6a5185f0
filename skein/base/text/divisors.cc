#include "skein/base/text/divisors.h"

#include <fmt/format.h>

namespace skein {
namespace {

// 0: none on that side.
std::string either(int64_t below, int64_t above) {
  if (below == 0 || above == 0) return fmt::format("{}", below + above);
  return fmt::format("{} or {}", below, above);
}

}  // namespace

std::string multiples_near(int64_t value, int64_t of) {
  const int64_t below = value / of * of;
  return either(below, below + of);
}

std::string divisors_near(int64_t value, int64_t of) {
  int64_t below = 0, above = 0;
  const auto consider = [&](int64_t divisor) {
    if (divisor <= value && divisor > below) below = divisor;
    if (divisor > value && (above == 0 || divisor < above)) above = divisor;
  };
  for (int64_t small = 1; small <= of / small; ++small) {
    if (of % small != 0) continue;
    consider(small);
    consider(of / small);
  }
  return either(below, above);
}

int64_t divisor_from(int64_t value, int64_t of) {
  int64_t least = 0;
  const auto consider = [&](int64_t divisor) {
    if (divisor >= value && (least == 0 || divisor < least)) least = divisor;
  };
  for (int64_t small = 1; small <= of / small; ++small) {
    if (of % small != 0) continue;
    consider(small);
    consider(of / small);
  }
  return least;
}

}  // namespace skein
