// Errors of a step name it.
#pragma once

#include <cstdint>
#include <string>

#include "skein/base/error.h"
#include "skein/runtime/device.h"

namespace skein {

// Adds the step to an error. An error that the device reports asynchronously belongs to an earlier
// op, so it is replaced by the device's own account of where it happened.
template <typename Work>
auto in_step(int64_t step, const Device& device, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kPeerLost) throw;
    const std::string behind = device.failure();
    if (!behind.empty()) fail(ErrorCode::kInternal, "{}", behind);
    fail(error.code(), "step {}: {}", step, error.what());
  }
}

}  // namespace skein
