#include "skein/base/machine/cores.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

namespace skein {
namespace {

const std::optional<CpuQuota>& own_quota() {
  static const std::optional<CpuQuota> quota = cpu_quota();
  return quota;
}

}  // namespace

int num_cores_to_run_on() {
  constexpr int kMostCores = 1 << 20;
  for (int size = CPU_SETSIZE; size <= kMostCores; size *= 2) {  // EINVAL: there are more cores
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(size));
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(size));
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    const bool too_small = !known && errno == EINVAL;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return std::max(1, count);
    if (!too_small) break;
  }
  return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

int num_cores(int to_run_on, const std::optional<CpuQuota>& quota) {
  if (!quota || quota->cores >= to_run_on) return to_run_on;
  return std::max(1, static_cast<int>(std::ceil(quota->cores)));
}

int num_cores() { return num_cores(num_cores_to_run_on(), own_quota()); }

std::string cores_text(int to_run_on, const std::optional<CpuQuota>& quota) {
  if (!quota || quota->cores >= to_run_on) return fmt::format("{}", to_run_on);
  return fmt::format("{} of {}: {} allows the time of {:.3g}", num_cores(to_run_on, quota),
                     to_run_on, quota->by, quota->cores);
}

std::string cores_text() { return cores_text(num_cores_to_run_on(), own_quota()); }

bool has_tight_quota() { return own_quota() && own_quota()->cores < num_cores_to_run_on(); }

}  // namespace skein
