// For errors about what does not divide: which numbers would do.
#pragma once

#include <cstdint>
#include <string>

namespace skein {

// The multiples of `of` above 0 on both sides of `value`, which is none: "8 or 12", "4".
std::string multiples_near(int64_t value, int64_t of);
// The divisors of `of` on both sides of `value`, which is none: "4 or 8", "64".
std::string divisors_near(int64_t value, int64_t of);
// The least divisor of `of` that is not below `value`; 0: there is none.
int64_t divisor_from(int64_t value, int64_t of);

}  // namespace skein
