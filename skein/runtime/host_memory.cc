#include "skein/runtime/host_memory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "skein/base/error.h"
#include "skein/base/machine/control_groups.h"
#include "skein/base/text/units.h"

namespace skein {
namespace {

// cgroup v1 writes "no limit" as the largest number of bytes in whole pages.
constexpr int64_t kNoLimit = int64_t{1} << 60;

std::string text_of(const fs::path& root, const std::string& path) {
  return read_file_if_any(root / fs::path(path).relative_path());
}

std::optional<int64_t> number(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return std::nullopt;
  int64_t value = 0;
  const auto [end, problem] =
      std::from_chars(text.data() + begin, text.data() + text.size(), value);
  if (problem != std::errc() || value < 0) return std::nullopt;
  return value;
}

// The number after a word that begins a line: "MemAvailable:   23 kB", "inactive_file 4096".
std::optional<int64_t> field(const std::string& text, std::string_view word) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    const bool is_it = line.size() > word.size() && line.starts_with(word) &&
                       (line[word.size()] == ' ' || line[word.size()] == '\t');
    if (is_it) return number(line.substr(word.size()));
    at = end + 1;
  }
  return std::nullopt;
}

// ---- the machine ----

void add_machine(const fs::path& root, const std::string& host, HostMemory& memory) {
  const std::string info = text_of(root, "/proc/meminfo");
  const auto bytes = [&](std::string_view word) -> std::optional<int64_t> {
    const auto kilobytes = field(info, word);
    return kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
  };
  const auto total = bytes("MemTotal:"), available = bytes("MemAvailable:");
  if (available) {
    memory.limits.push_back({"machine " + host, "free memory of this machine (MemAvailable)",
                             total.value_or(*available), *available});
  }
  const auto limit = bytes("CommitLimit:"), committed = bytes("Committed_AS:");
  if (number(text_of(root, "/proc/sys/vm/overcommit_memory")) == 2 && limit && committed) {
    memory.limits.push_back(
        {"commit " + host, "what this machine may promise (CommitLimit, vm.overcommit_memory = 2)",
         *limit, std::max<int64_t>(0, *limit - *committed)});
  }
}

// ---- control groups ----

struct GroupUse {
  std::string key;  // the file with the limit
  int64_t limit = kNoLimit;
  int64_t used = 0;
};

std::optional<GroupUse> use_of(const fs::path& group, bool v2) {
  GroupUse use;
  // Above memory.high the kernel throttles a group almost to a standstill, since weights cannot be
  // reclaimed: it is as hard a limit as memory.max.
  for (const char* key :
       v2 ? std::vector{"memory.max", "memory.high"} : std::vector{"memory.limit_in_bytes"}) {
    const auto limit = number(read_file_if_any(group / key));  // "max" is no number
    if (limit && *limit < use.limit) {
      use.limit = *limit;
      use.key = key;
    }
  }
  const auto used =
      number(read_file_if_any(group / (v2 ? "memory.current" : "memory.usage_in_bytes")));
  if (use.limit >= kNoLimit || !used) return std::nullopt;
  const std::string stat = read_file_if_any(group / "memory.stat");
  const std::string prefix = v2 ? "" : "total_";
  int64_t cache = 0;
  for (const char* kind : {"inactive_file", "active_file"})
    cache += field(stat, prefix + kind).value_or(0);
  if (v2) cache += field(stat, "slab_reclaimable").value_or(0);
  use.used = std::max<int64_t>(0, *used - cache);
  return use;
}

void add_groups(const fs::path& root, const std::string& host, HostMemory& memory) {
  for (const ControlGroup& group : control_groups("memory", root)) {
    struct stat place {};
    const auto use = use_of(group.folder, group.v2);
    if (!use || ::stat(group.folder.c_str(), &place) != 0) continue;
    memory.limits.push_back({fmt::format("cgroup {} {}:{}", host, place.st_dev, place.st_ino),
                             fmt::format("the control group {} ({}, of {})", group.name, use->key,
                                         format_bytes(use->limit)),
                             use->limit, std::max<int64_t>(0, use->limit - use->used)});
  }
}

// ---- this process ----

void add_process(const fs::path& root, HostMemory& memory) {
  const std::string limits = text_of(root, "/proc/self/limits");
  const std::string status = text_of(root, "/proc/self/status");
  const auto add = [&](std::string_view row, const char* used, const char* by) {
    const auto limit = field(limits, row);  // the soft one; "unlimited" is no number
    if (!limit) return;
    const int64_t mapped = field(status, used).value_or(0) * 1024;
    memory.limits.push_back({"", fmt::format("{} of this process ({})", by, format_bytes(*limit)),
                             *limit, std::max<int64_t>(0, *limit - mapped), true});
  };
  add("Max address space", "VmSize:", "RLIMIT_AS, ulimit -v,");
  add("Max data size", "VmData:", "RLIMIT_DATA, ulimit -d,");
  memory.own_bytes = field(status, "RssAnon:").value_or(0) * 1024;
}

}  // namespace

const MemoryLimit* HostMemory::tightest() const {
  const auto least = std::min_element(
      limits.begin(), limits.end(),
      [](const MemoryLimit& a, const MemoryLimit& b) { return a.free_bytes < b.free_bytes; });
  return least == limits.end() ? nullptr : &*least;
}

HostMemory read_host_memory(const fs::path& root) {
  // Containers of one host share its memory but not its name: the boot id identifies it.
  std::string host = text_of(root, "/proc/sys/kernel/random/boot_id");
  while (!host.empty() && host.back() == '\n') host.pop_back();
  HostMemory memory;
  add_machine(root, host, memory);
  add_groups(root, host, memory);
  add_process(root, memory);
  return memory;
}

void require_host_memory(int64_t bytes, const std::string& what) {
  const HostMemory memory = read_host_memory();
  const MemoryLimit* limit = memory.tightest();
  if (limit == nullptr || bytes <= limit->free_bytes) return;
  fail(ErrorCode::kNoSpace,
       "{} needs {} of memory, and {} are left by {}: free some, or take a machine or a limit with "
       "more; of a training run, `skein plan` says what else would make it fit",
       what, format_bytes(bytes), format_bytes(limit->free_bytes), limit->by);
}

}  // namespace skein
