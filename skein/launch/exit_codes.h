// How a process of Skein ends, for scripts and schedulers.
#pragma once

#include "skein/base/error.h"

namespace skein {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;     // the command line or a configuration is wrong
constexpr int kExitRequeue = 75;  // stopped by a signal after saving: run again to continue

// What is not built, or not in this build, was asked for by a configuration.
inline int exit_code_of(const Error& error) {
  const bool is_usage =
      error.code() == ErrorCode::kUsage || error.code() == ErrorCode::kUnsupported;
  return is_usage ? kExitUsage : kExitFailed;
}

}  // namespace skein
