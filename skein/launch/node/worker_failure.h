// How a worker ended, and which of several failures is the cause of the others.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "skein/base/ending.h"
#include "skein/base/files/file.h"
#include "skein/supervise/records.h"

namespace skein {

struct WorkerFailure {
  int rank = 0;
  Ending ending = Ending::kCrashed;
  bool told = false;  // the worker reported the failure itself
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // "rank 3 failed: ..."

  // It failed only because another worker did.
  bool lost_peer() const { return ending == Ending::kLostPeer; }
};

// Of a worker whose `status` (of waitpid) says neither that it finished nor that it was asked to
// stop. `report`: its own. `out_of_memory`: the kernel killed it for that. `is_first`: in the first
// generation of a launch.
WorkerFailure worker_failure(int rank, int status, const std::optional<Error>& report,
                             const fs::path& log, bool out_of_memory, bool is_first);

// A worker's failure report for the parent, written atomically: <rendezvous_folder>/failed-00003,
// {"code": the number of its ErrorCode, "message"}.
void report_failure(const fs::path& rendezvous_folder, int rank, const Error& error);
std::optional<Error> read_failure(const fs::path& rendezvous_folder, int rank);

// What ended a generation on this machine: the first failure that is not a lost peer, or else the
// first one; and when the first sign of it came.
class GenerationFailure {
 public:
  // Something went wrong; a generation that was asked to stop has no such sign.
  void notice(Millis now) {
    if (!noticed_) noticed_ = now;
  }
  // How long ago it was noticed, and begins again.
  Millis take_age(Millis now) {
    const Millis since = std::exchange(noticed_, std::nullopt).value_or(now);
    return now - since;
  }
  void add(const WorkerFailure& failure, int64_t generation) {
    const WorkerFailure* known = of(generation);
    if (known == nullptr || (known->lost_peer() && !failure.lost_peer())) set(failure, generation);
  }
  // The failure, whatever was known before.
  void set(const WorkerFailure& failure, int64_t generation) {
    failure_ = failure;
    generation_ = generation;
  }
  // Null: there is none.
  const WorkerFailure* of(int64_t generation) const {
    return failure_ && generation_ == generation ? &*failure_ : nullptr;
  }

 private:
  std::optional<WorkerFailure> failure_;
  int64_t generation_ = 0;
  std::optional<Millis> noticed_;
};

// How often the kernel has killed a process of this machine, or of this container, for its memory.
int64_t oom_kills();

}  // namespace skein
