// Cache lines that are needed soon.
#pragma once

namespace skein {

// Starts to fetch the line at `data`, which need not be readable. kLocality: 3 to the first level
// of caches, 2 to the second.
// GCC 12 takes a function that does nothing else for one without effects and leaves out its calls;
// the empty statement is an effect.
template <int kLocality = 3>
[[gnu::always_inline]] inline void prefetch(const void* data) {
  __builtin_prefetch(data, /*write=*/0, kLocality);
  asm volatile("");
}

}  // namespace skein
