#include "skein/launch/node/generation_log.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "skein/checkpoint/format/stored_file.h"
#include "skein/record/files/events.h"

namespace skein {
namespace {

// "node7" of "node7.4711-8fd4": another process on the same machine is no other machine.
std::set<std::string> machines_of(const GenerationRecord& generation) {
  std::set<std::string> machines;
  for (const auto& member : generation.members) {
    machines.insert(member.host.substr(0, member.host.rfind('.')));
  }
  return machines;
}

// Without a failure somebody was lost, or let in.
std::string cause_of(const GenerationRecord& generation, bool some_are_lost) {
  const std::string cause = cause_in(generation.failure);
  if (!cause.empty()) return cause;
  return some_are_lost ? kLostMachine : ending_name(Ending::kRegrouped);
}

// "D 12:00:00 arenas {"weights": …}": for a debugger and the like.
bool is_for_programs(const std::string& line) {
  return (line.starts_with("I ") || line.starts_with("D ")) && line.ends_with("}") &&
         line.find(" {\"") != std::string::npos;
}

// "I 12:00:00 rank 1 of 2 on host, process 17": a worker's first line.
bool begins_a_worker(const std::string& line) {
  return line.find(" rank ") != std::string::npos && line.find(", process ") != std::string::npos;
}

// Of the newest worker that wrote there, and for people.
std::vector<std::string> last_lines(const fs::path& path, size_t most) {
  constexpr int64_t kBytes = 16 << 10;
  Result<StoredFile> file = try_run([&] { return StoredFile(path); });
  if (!file.ok()) return {};
  const int64_t size = file.value().num_bytes(), begin = std::max<int64_t>(size - kBytes, 0);
  std::string text(static_cast<size_t>(size - begin), '\0');
  file.value().read(begin, std::as_writable_bytes(std::span(text)));
  std::vector<std::string> lines;
  while (!text.empty() && lines.size() < most) {
    if (text.back() == '\n') text.pop_back();
    const size_t begin = text.rfind('\n') + 1;  // npos + 1 is 0
    const std::string line = text.substr(begin);
    if (!is_for_programs(line)) lines.insert(lines.begin(), line);
    if (begins_a_worker(line)) break;
    text.resize(begin);
  }
  return lines;
}

}  // namespace

std::optional<int> rank_in(const std::string& failure) {
  constexpr std::string_view kWord = "rank ";
  const size_t at = failure.find(kWord);
  if (at == std::string::npos) return std::nullopt;
  int rank = 0;
  const char* digits = failure.data() + at + kWord.size();
  const auto [end, wrong] = std::from_chars(digits, failure.data() + failure.size(), rank);
  return wrong == std::errc() && rank >= 0 ? std::optional(rank) : std::nullopt;
}

void GenerationLog::begin(const GenerationBegins& begins) noexcept {
  leads_ = begins.leads;
  if (begins.leads && begins.record.number > 1) {
    try {
      record(begins);
      show_last_lines(begins.record.failure);
    } catch (const std::exception& problem) {  // training goes on without it
      log::error("cannot write down that generation {} began: {}", begins.record.number,
                 problem.what());
    }
  }
  former_ = begins.record;
}

void GenerationLog::record(const GenerationBegins& begins) const {
  const GenerationRecord& generation = begins.record;
  const std::set<std::string> now = machines_of(generation);
  const std::set<std::string> before = former_ ? machines_of(*former_) : now;
  EventLog events(run_dir_);
  bool some_are_lost = false;
  for (const std::string& machine : before) {
    if (now.contains(machine)) continue;
    some_are_lost = true;
    events.append(
        "host_lost",
        {{"machine", machine}, {"generation", generation.number}, {"reason", generation.failure}});
  }
  for (const std::string& machine : now) {
    if (before.contains(machine)) continue;
    events.append("host_joined", {{"machine", machine}, {"generation", generation.number}});
  }
  OrderedJson hosts = OrderedJson::array();
  for (const auto& member : generation.members) hosts.push_back(member.host);
  events.append("generation", {{"generation", generation.number},
                               {"ranks", generation.num_ranks()},
                               {"hosts", std::move(hosts)},
                               {"reason", generation.failure},
                               {"cause", cause_of(generation, some_are_lost)},
                               {"known_seconds", static_cast<double>(begins.known) / 1000},
                               {"waited_seconds", static_cast<double>(begins.waited) / 1000}});
}

void GenerationLog::show_last_lines(const std::string& failure) const {
  constexpr size_t kMost = 12;
  const std::optional<int> rank = rank_in(failure);
  if (!leads_ || !rank || *rank == 0) return;
  for (const std::string& line : last_lines(rank_log(run_dir_, *rank), kMost)) {
    log::info("rank {} | {}", *rank, line);
  }
}

}  // namespace skein
