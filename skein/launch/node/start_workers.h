// The part of `skein train` that trains nothing itself: it meets the other machines of the run, if
// there are several, starts the workers of this one, and writes down what becomes of them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/error.h"
#include "skein/config/config.h"
#include "skein/config/named_config.h"
#include "skein/launch/place/host_lock.h"
#include "skein/launch/place/rendezvous_root.h"

namespace skein {

// What a start knows before it makes anything.
struct Meeting {
  std::string launcher_start;      // the launcher's name for it; empty: there is none
  std::vector<int> host_counts;    // the numbers of machines that will do
  std::optional<HostLock> lock;    // where there may be several
  std::vector<std::string> flags;  // of `skein train`, for its workers: it only validates
};

// What a start asks of the folder that it made, which a mistake before training takes away again.
struct MadeFolder {
  std::function<bool()> has_begun;  // the run reached training, in this start or an earlier one
  std::function<void()> keep_logs;  // an error message refers to them
};

// Returns the exit code. `copies`: lines to say first. Errors  those of run_workers
int start_workers(const NamedConfig& named, const Config& config, const Meeting& meeting,
                  const std::vector<std::string>& copies, const MadeFolder& folder);

// Says how many cores are used where a control group allows the time of fewer than there are, and
// warns where the configuration wants more threads than that. `workers`: of this machine.
void tell_cores(const Config& config, int64_t workers);
// Where the run lies, and whether this start begins it: what to look for on any later day.
std::string run_line(const Config& config);
void say(const std::vector<std::string>& lines);
// `is_under_way`: for a worker, whose supervisor has used it before.
RendezvousRoot root_of(const Config& config, bool is_under_way = false);
// Error{kUsage}: etcd does not let this run in, and waiting mends nothing. Makes nothing.
void check_rendezvous_of(const Config& config);

}  // namespace skein
