// The part of `skein train` that trains nothing itself: it meets the other machines of the run, if
// there are several, starts the workers of this one, and writes down what becomes of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "skein/base/error.h"
#include "skein/cli/command.h"
#include "skein/config/config.h"
#include "skein/launch/host_lock.h"
#include "skein/launch/rendezvous_root.h"
#include "skein/train/run_folder.h"

namespace skein {

// What a start knows before it makes anything.
struct Meeting {
  std::string launcher_start;      // the launcher's name for it; empty: there is none
  std::vector<int> host_counts;    // the numbers of machines that will do
  std::optional<HostLock> lock;    // where there may be several
  std::vector<std::string> flags;  // of `skein train`, for its workers: it only validates
};

// Returns the exit code. `copies`: lines to say first. Errors  those of run_workers
int start_workers(const ConfigOptions& options, const Config& config, const Meeting& meeting,
                  const std::vector<std::string>& copies, NewRunFolder& new_folder);

// Whether an error is the user's mistake; other errors are failures of the machine or of skein.
bool is_mistake(ErrorCode code);
// Where the run lies, and whether this start begins it: what to look for on any later day.
std::string run_line(const Config& config);
void say(const std::vector<std::string>& lines);
RendezvousRoot root_of(const Config& config);

}  // namespace skein
