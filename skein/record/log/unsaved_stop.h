// The `stop` event of a run that somebody ended without saving, by a second SIGINT:
//
//   {"time": …, "event": "stop", "step": 12, "reason": "SIGINT twice, without saving",
//    "saved": false, "saved_step": 10, "host": …, "boot": …, "clock": …}
//
// `step` is the last step that was done, `saved_step` the step of the newest checkpoint, 0: none.
// Who writes it: a run of one process or of another launcher's workers, rank 0 in its signal
// handler; a run whose workers a supervisor started, the supervisor of the machine of rank 0.
#pragma once

#include <cstdint>
#include <string>

#include "skein/base/files/file.h"

namespace skein {

inline constexpr char kUnsavedStopReason[] = "SIGINT twice, without saving";

// What a signal handler needs to write that line: an open file, and its unchanging parts.
class UnsavedStop {
 public:
  // Throws Error{kIo | kNotFound} where `run_dir`/events.jsonl cannot be opened; it must exist.
  explicit UnsavedStop(const fs::path& run_dir);
  // May be called in a signal handler. What a disk does not take is lost.
  void write(int64_t step, int64_t saved_step) const noexcept;

 private:
  FileDescriptor file_;
  std::string machine_;  // `, "host": …, "boot": …, "clock": `
};

// The same for a process that is in no signal handler and outlives its workers. Writes nothing
// where no run has begun in `run_dir`, or where it has stopped already. Never throws: if it cannot
// write, it logs that.
void record_unsaved_stop(const fs::path& run_dir, int64_t saved_step) noexcept;

}  // namespace skein
