// The folder of checkpoints: a file is written, fsynced and read back, and its clock compared with
// this machine's.
//
// File     without a name as soon as it is open, so that nothing is left behind; in the nearest
//          folder above where `folder` is not there yet
// Cache    the kernel is asked to drop the file's pages before they are read; whether it did is
//           said
// Full     doubtful, not sick: every machine of the run meets the same full disk, and training goes
//          on without saving
// Unable   doubtful as well: a file system that refuses what is asked of a file without a name
// Clock    of the file's mtime, which the file system's server sets. Skein compares no clocks, but
//          people compare logs: off by more than kClockDoubtful is doubtful, by kClockSick sick
#pragma once

#include "skein/base/files/file.h"
#include "skein/health/check.h"

namespace skein {

constexpr double kClockDoubtful = 1, kClockSick = 60;  // seconds

// The folder itself or, where it is not there, the nearest one above it.
fs::path nearest_folder(const fs::path& folder);

CheckResult check_storage(const fs::path& folder, int64_t bytes);
CheckResult check_clock(const fs::path& folder);
// `of`: whose clock, for people.
CheckResult judge_clock(double seconds_ahead, const std::string& of);

}  // namespace skein
