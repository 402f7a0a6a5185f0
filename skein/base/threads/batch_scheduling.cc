#include "skein/base/threads/batch_scheduling.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace skein {
namespace {

// The first version of the kernel's struct (sched_setattr(2)), declared here because its header and
// the C library's cannot be included together.
struct sched_attr {
  uint32_t size, sched_policy;
  uint64_t sched_flags;
  int32_t sched_nice;
  uint32_t sched_priority;
  uint64_t sched_runtime, sched_deadline, sched_period;
};

bool get(sched_attr& attributes) {
  return syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) == 0;
}

bool choose(sched_attr attributes, uint32_t policy, uint64_t slice_ns) {
  attributes.size = sizeof attributes;
  attributes.sched_policy = policy;
  attributes.sched_runtime = slice_ns;
  attributes.sched_flags = 0;
  return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

}  // namespace

BatchScheduling::BatchScheduling(std::chrono::nanoseconds slice) {
  sched_attr now = {};
  if (!get(now) || (now.sched_policy != SCHED_OTHER && now.sched_policy != SCHED_BATCH)) return;
  former_policy_ = now.sched_policy;
  former_slice_ns_ = now.sched_runtime;
  active_ = choose(now, SCHED_BATCH, static_cast<uint64_t>(slice.count()));
}

BatchScheduling::~BatchScheduling() {
  sched_attr now = {};
  if (active_ && get(now)) choose(now, former_policy_, former_slice_ns_);
}

}  // namespace skein
