// A pattern written to memory and read back: stuck and swapped bits, wrong addresses.
//
// Pattern  64 bits a word, drawn by a hash of the word's place; then the complement of each
// Memory   at most `bytes`, and a quarter of what is free: of the device's own where it has some,
//          else of the host's
// Cost     each word is written and read twice
#pragma once

#include "skein/health/check.h"
#include "skein/runtime/device.h"

namespace skein {

CheckResult check_memory_pattern(Device& device, int64_t bytes);

}  // namespace skein
