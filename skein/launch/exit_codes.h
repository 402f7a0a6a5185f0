// The exit codes of skein, for scripts and schedulers.
#pragma once

#include "skein/base/error.h"

namespace skein {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;     // the command line or a configuration is wrong
constexpr int kExitRegroup = 76;  // of a worker: saved, for another machine to come in
constexpr int kExitRequeue = 75;  // stopped by a signal after saving: run again to continue

inline int exit_code_of(const Error& error) {
  return error.code() == ErrorCode::kUsage ? kExitUsage : kExitFailed;
}

}  // namespace skein
