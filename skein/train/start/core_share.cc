#include "skein/train/start/core_share.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "skein/base/machine/control_groups.h"
#include "skein/base/machine/machine.h"
#include "skein/base/text/json_text.h"
#include "skein/train/start/consensus.h"

namespace skein {

CoreUse core_use(int threads, const fs::path& root) {
  CoreUse use;
  use.machine = node_name() + "/" + boot_name();
  use.threads = threads;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    use.num_cores = CPU_COUNT(&set);
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) use.cores += fmt::format("{},", core);
    }
  }
  if (const std::optional<CpuQuota> quota = cpu_quota(root)) {
    use.limit = quota->group;
    use.limit_cores = quota->cores;
  }
  return use;
}

double core_share(const std::vector<CoreUse>& workers, const CoreUse& mine) {
  int on_cores = 0, in_group = 0;
  for (const CoreUse& worker : workers) {
    if (worker.machine != mine.machine) continue;
    if (worker.cores == mine.cores) on_cores += worker.threads;
    if (worker.limit == mine.limit) in_group += worker.threads;
  }
  double share = 1;
  if (mine.num_cores > 0 && on_cores > 0) share = std::min(share, 1.0 * mine.num_cores / on_cores);
  if (!mine.limit.empty() && in_group > 0) share = std::min(share, mine.limit_cores / in_group);
  return share;
}

double core_share(Communicator& world, int threads) {
  const CoreUse mine = core_use(threads);
  std::vector<CoreUse> workers;
  const Json told = {mine.machine, mine.cores, mine.limit, mine.threads};
  for (const std::string& text : texts_of_all(world, json_text(told))) {
    const Json json = parse_json(text, "a rank's cores");
    workers.push_back(
        {.machine = json.at(0), .cores = json.at(1), .limit = json.at(2), .threads = json.at(3)});
  }
  return core_share(workers, mine);
}

}  // namespace skein
