#include "skein/base/machine/control_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace skein {
namespace {

std::string text_of(const fs::path& root, const std::string& path) {
  return read_file_if_any(root / fs::path(path).relative_path());
}

// The mount point of a hierarchy, and the group that is the visible root there.
struct GroupMount {
  fs::path at;
  std::string group;
  bool v2 = false;
};

bool lists(const std::string& options, std::string_view controller) {
  return options.find(fmt::format(",{},", controller)) != options.npos;
}

// Lines of proc(5): "31 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory".
std::vector<GroupMount> group_mounts(const fs::path& root, std::string_view controller) {
  std::vector<GroupMount> mounts;
  std::istringstream text(text_of(root, "/proc/self/mountinfo"));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string skipped, group, at, word, kind, source, options;
    words >> skipped >> skipped >> skipped >> group >> at;
    while (words >> word && word != "-") {
    }
    words >> kind >> source >> options;
    const bool v2 = kind == "cgroup2";
    const bool v1 = kind == "cgroup" && lists("," + options + ",", controller);
    if (v1 || v2) mounts.push_back({root / fs::path(at).relative_path(), group, v2});
  }
  return mounts;
}

// This process's group in the hierarchy: "4:cpu,cpuacct:/a/b", in v2 "0::/a/b".
std::optional<std::string> own_group(const fs::path& root, std::string_view controller, bool v2) {
  std::istringstream text(text_of(root, "/proc/self/cgroup"));
  for (std::string line; std::getline(text, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (v2 ? controllers == ",," : lists(controllers, controller)) return line.substr(second + 1);
  }
  return std::nullopt;
}

// The first number of `text`; nothing for "max", and for -1, which is no limit.
std::optional<double> positive_number(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return std::nullopt;
  int64_t value = 0;
  const auto [end, problem] =
      std::from_chars(text.data() + begin, text.data() + text.size(), value);
  if (problem != std::errc() || value <= 0) return std::nullopt;
  return static_cast<double>(value);
}

std::optional<double> cores_of(const ControlGroup& group) {
  std::string quota, period;
  if (group.v2) {
    std::istringstream text(read_file_if_any(group.folder / "cpu.max"));
    text >> quota >> period;
  } else {
    quota = read_file_if_any(group.folder / "cpu.cfs_quota_us");
    period = read_file_if_any(group.folder / "cpu.cfs_period_us");
  }
  const auto micros = positive_number(quota), of = positive_number(period);
  return micros && of ? std::optional(*micros / *of) : std::nullopt;
}

}  // namespace

std::vector<ControlGroup> control_groups(std::string_view controller, const fs::path& root) {
  std::vector<ControlGroup> groups;
  for (const GroupMount& mount : group_mounts(root, controller)) {
    const auto own = own_group(root, controller, mount.v2);
    if (!own) continue;
    // A container may see its own group as the root of the mount, while /proc gives the host's
    // path.
    const fs::path inside = fs::path(*own).lexically_relative(mount.group);
    const bool is_inside = !inside.empty() && inside.begin()->string() != "..";
    fs::path group = is_inside ? (mount.at / inside).lexically_normal() : mount.at;
    std::error_code ignored;
    if (!fs::is_directory(group, ignored)) group = mount.at;
    while (true) {
      if (!group.has_filename()) group = group.parent_path();
      const std::string name = "/" + group.lexically_relative(mount.at).string();
      groups.push_back({group, name == "/." ? "/" : name, mount.v2});
      if (group == mount.at || group == group.parent_path()) break;
      group = group.parent_path();
    }
  }
  return groups;
}

std::optional<CpuQuota> cpu_quota(const fs::path& root) {
  std::optional<CpuQuota> least;
  for (const ControlGroup& group : control_groups("cpu", root)) {
    const auto cores = cores_of(group);
    if (!cores || (least && *cores >= least->cores)) continue;
    least = {*cores, group.name,
             fmt::format("the control group {} ({})", group.name,
                         group.v2 ? "cpu.max" : "cpu.cfs_quota_us")};
  }
  return least;
}

}  // namespace skein
