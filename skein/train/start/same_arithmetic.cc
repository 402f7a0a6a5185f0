#include "skein/train/start/same_arithmetic.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "skein/base/error.h"
#include "skein/ops/simd/cpu_kind.h"
#include "skein/train/start/consensus.h"

namespace skein {
namespace {

constexpr size_t kMaxNamed = 8;

// "0 to 3, 7": ranges of ranks, cut after kMaxNamed of them to stay readable.
std::string runs_of(const std::vector<int>& ranks) {
  std::string text;
  size_t num_runs = 0;
  for (size_t i = 0, end = 0; i < ranks.size(); i = end) {
    for (end = i + 1; end < ranks.size() && ranks[end] == ranks[end - 1] + 1;) ++end;
    if (++num_runs > kMaxNamed) return text + fmt::format(" and {} more", ranks.size() - i);
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
    if (end > i + 1) text += fmt::format(" to {}", ranks[end - 1]);
  }
  return text;
}

std::string names_of(std::vector<std::string> hosts) {
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  const size_t more = hosts.size() - std::min(hosts.size(), kMaxNamed);
  hosts.resize(hosts.size() - more);
  std::string text = fmt::format("{}", fmt::join(hosts, ", "));
  return more > 0 ? text + fmt::format(" and {} more", more) : text;
}

std::string advice(const std::vector<std::string>& kinds) {
  const std::string common = common_cpu_kind(kinds);
  if (common.empty()) return "start all of them on one kind of device";
  return fmt::format(
      "start all of them on one kind of CPU, or set device.cpu = \"{}\", which all of them have",
      common);
}

}  // namespace

void check_same_arithmetic(Communicator& world, const std::string& arithmetic,
                           const std::string& host) {
  struct Group {
    std::vector<int> ranks;
    std::vector<std::string> hosts;
  };
  std::map<std::string, Group> groups;
  const std::vector<std::string> said = texts_of_all(world, arithmetic + '\n' + host);
  for (size_t rank = 0; rank < said.size(); ++rank) {
    const size_t end = said[rank].find('\n');
    Group& group = groups[said[rank].substr(0, end)];
    group.ranks.push_back(static_cast<int>(rank));
    group.hosts.push_back(said[rank].substr(end + 1));
  }
  if (groups.size() <= 1) return;
  std::vector<std::string> kinds;
  std::string text;
  for (const auto& [kind, group] : groups) {
    kinds.push_back(kind);
    text += fmt::format("{}{} on rank{} {} ({})", text.empty() ? "" : "; ", kind,
                        group.ranks.size() == 1 ? "" : "s", runs_of(group.ranks),
                        names_of(group.hosts));
  }
  fail(ErrorCode::kUsage, "the ranks of this run would round differently, by their devices: {}: {}",
       text, advice(kinds));
}

void check_same_arithmetic(Communicator& world, const Device& device) {
  std::array<char, 256> host = {};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  check_same_arithmetic(world, device.arithmetic(), host.data());
}

}  // namespace skein
