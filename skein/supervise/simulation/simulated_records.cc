// The records of the made-up store, as one host reads and writes them: single calls fail, with or
// without effect, and caches show what is old.
#include "skein/supervise/simulation/simulated_records.h"

#include <algorithm>
#include <array>
#include <utility>

#include "skein/base/text/json_text.h"

namespace skein {
namespace {

constexpr std::array<const char*, 4> kFaults = {"EIO", "ESTALE", "EACCES", "EMFILE"};
const std::string kPlace = "the store";
constexpr int kFewHosts = 16;

}  // namespace

const std::string& Simulation::Records::text() const { return kPlace; }

void Simulation::Records::fail_at_times(const std::string& name) {
  const double probability = simulation_.in_trouble() ? 0.001 : 0;
  const bool is_spoilt = name == simulation_.unreadable_;
  if (host_.opens_files && !is_spoilt && !simulation_.chance(probability)) return;
  const char* fault = !host_.opens_files ? "EMFILE"
                      : is_spoilt        ? "EACCES"
                                         : kFaults[simulation_.between(0, kFaults.size() - 1)];
  fail(ErrorCode::kIo, "{}: {}", name, fault);
}

template <typename Record>
Record Simulation::Records::read(const std::string& name, const Versions<Record>& versions) {
  fail_at_times(name);
  return versions.read(simulation_.now_, [&] { return simulation_.chance(0.05); });
}

template <typename Record>
void Simulation::Records::replace(const std::string& name, Versions<Record>& versions,
                                  Record record) {
  ++host_.calls.others;
  if (name != simulation_.unreadable_) fail_at_times(name);
  versions.add(simulation_.now_, std::move(record));
  if (name == simulation_.unreadable_) simulation_.unreadable_.clear();  // it is another file now
  fail_at_times(name);
}

void Simulation::Records::write(const HostRecord& record) {
  const auto there = simulation_.store_hosts_.find(record.host);
  const bool is_new = there == simulation_.store_hosts_.end();
  if (!is_new && there->second.newest().beat >= record.beat) return;  // it was overtaken
  Versions<HostRecord> none;
  try {
    replace(record.host, is_new ? none : there->second, record);
  } catch (const Error&) {
    if (!none.empty()) simulation_.store_hosts_.emplace(record.host, std::move(none));
    throw;
  }
  if (is_new) simulation_.store_hosts_.emplace(record.host, std::move(none));
}

// Nobody needs the record to be gone, so it stays, as if this never came through.
void Simulation::Records::remove(const std::string&) { ++host_.calls.others; }

std::vector<HostRecord> Simulation::Records::hosts(const std::set<std::string>& known,
                                                   std::set<std::string>& unread,
                                                   const std::function<void()>& after_each) {
  ++host_.calls.others;
  fail_at_times("the folder");
  std::vector<HostRecord> hosts;
  for (const auto& [name, versions] : simulation_.store_hosts_) {
    if (known.contains(name)) continue;
    ++host_.calls.host_records;
    const bool is_own = name == host_.name();
    try {
      hosts.push_back(is_own ? versions.newest() : read(name, versions));
    } catch (const Error&) {
      unread.insert(name);
    }
    after_each();
  }
  return hosts;
}

int64_t Simulation::Records::newest_number() {
  ++host_.calls.others;
  fail_at_times("the folder");
  auto number = static_cast<int64_t>(simulation_.store_generations_.size());
  if (number > known_number_ && simulation_.chance(0.05)) --number;
  known_number_ = std::max(known_number_, number);
  return known_number_;
}

SharedGeneration Simulation::Records::generation(int64_t number) {
  ++host_.calls.others;
  fail_at_times("a generation");
  const auto index = static_cast<size_t>(number - 1);
  const std::vector<SharedGeneration>& all = simulation_.store_generations_;
  return index < all.size() ? all[index] : SharedGeneration();
}

bool Simulation::Records::create(const GenerationRecord& generation) {
  ++host_.calls.others;
  fail_at_times("a generation");
  std::vector<SharedGeneration>& all = simulation_.store_generations_;
  if (generation.number != static_cast<int64_t>(all.size()) + 1) return false;
  all.push_back(generation);
  simulation_.note_generation(host_, generation);
  simulation_.check_regroup(generation);
  fail_at_times("a generation");
  return true;
}

std::optional<HostDigest> Simulation::Records::digest() {
  ++host_.calls.others;
  if (simulation_.store_digests_.empty()) return std::nullopt;
  return read("digest", simulation_.store_digests_);
}

void Simulation::Records::write(const HostDigest& digest) {
  replace("digest", simulation_.store_digests_, digest);
}

std::shared_ptr<const DigestList> Simulation::Records::digest_list() {
  ++host_.calls.others;
  if (simulation_.store_lists_.empty()) return nullptr;
  return read("digest-hosts", simulation_.store_lists_);
}

// As a text where there are few hosts: thousands that parse lists of thousands would take minutes.
void Simulation::Records::write(std::shared_ptr<const DigestList> list) {
  if (std::ssize(simulation_.hosts_) <= kFewHosts) {
    const std::string text = json_text(digest_list_to_json(*list));
    list = std::make_shared<const DigestList>(digest_list_from_json(Json::parse(text), kPlace));
  }
  replace("digest-hosts", simulation_.store_lists_, std::move(list));
}

std::unique_ptr<RecordStore> Simulation::records_of(SimHost& host) {
  return std::make_unique<Records>(*this, host);
}

}  // namespace skein
