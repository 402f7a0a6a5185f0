#include "skein/train/core_share.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <sstream>

#include "skein/base/json.h"
#include "skein/base/machine.h"
#include "skein/train/consensus.h"

namespace skein {
namespace {

std::string word_after(const std::string& text, std::string_view begin) {
  const size_t at = text.find(begin);
  if (at == text.npos) return "";
  const size_t from = at + begin.size();
  return text.substr(from, text.find('\n', from) - from);
}

// The tightest cpu.max ("MICROSECONDS PERIOD", or "max PERIOD") of this process's cgroup and those
// above it. Where the path is another namespace's, that of the visible root.
void read_limit(const fs::path& root, CoreUse& use) {
  const fs::path top = root / "sys/fs/cgroup";
  fs::path group = word_after(read_file_if_any(root / "proc/self/cgroup"), "0::/");
  if (!fs::exists(top / group / "cpu.max")) group.clear();
  for (bool more = true; more; group = group.parent_path()) {
    more = !group.empty();
    std::istringstream text(read_file_if_any(top / group / "cpu.max"));
    double micros = 0, period = 0;
    if (!(text >> micros >> period) || micros <= 0 || period <= 0) continue;
    if (!use.limit.empty() && micros / period >= use.limit_cores) continue;
    use.limit = "/" + group.string();
    use.limit_cores = micros / period;
  }
}

}  // namespace

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
  read_limit(root, use);
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
  for (const std::string& text : texts_of_all(world, told.dump())) {
    const Json json = parse_json(text, "a rank's cores");
    workers.push_back(
        {.machine = json.at(0), .cores = json.at(1), .limit = json.at(2), .threads = json.at(3)});
  }
  return core_share(workers, mine);
}

}  // namespace skein
