#include "skein/comm/gloo/rendezvous.h"

#include <algorithm>
#include <charconv>
#include <random>
#include <set>
#include <thread>

#include "skein/base/error.h"
#include "skein/base/text/units.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kTable = "table";
constexpr auto kLongestPause = std::chrono::microseconds(250'000);  // between two polls

// Ranks of one host with the same namespace share a loopback interface.
std::string network_namespace() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/ns/net", ignored).string();
}

// What cannot be read, as where there is no /proc, is never that of another rank: its machine may
// be another one.
std::string known_or_own(std::string text, int rank) {
  return text.empty() ? fmt::format("unknown-{}", rank) : text;
}

std::string name_of(const char* kind, int rank) { return fmt::format("{}-{:05d}", kind, rank); }

std::string to_text(const std::map<int, std::vector<char>>& addresses) {
  std::string text;
  for (const auto& [peer, address] : addresses) {
    text += fmt::format("{} ", peer);
    for (const char byte : address) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
    text += '\n';
  }
  return text;
}

// Of ranks `readers`, ascending; lines that are no addresses are passed over.
std::map<int, std::vector<char>> from_text(const std::string& text,
                                           const std::vector<int>& readers) {
  std::map<int, std::vector<char>> addresses;
  for (size_t begin = 0; begin < text.size();) {
    const char* at = text.data() + begin;
    const size_t end = std::min(text.find('\n', begin), text.size());
    const char* const last = text.data() + end;
    begin = end + 1;
    int peer = -1;
    at = std::from_chars(at, last, peer).ptr;
    if (!std::binary_search(readers.begin(), readers.end(), peer)) continue;
    std::vector<char> address;
    uint8_t byte = 0;
    for (++at; last - at >= 2 && std::from_chars(at, at + 2, byte, 16).ptr == at + 2; at += 2) {
      address.push_back(static_cast<char>(byte));
    }
    if (at == last && address.size() <= TableRecord::kMaxBytes)
      addresses[peer] = std::move(address);
  }
  return addresses;
}

std::shared_ptr<KeyValueStore> store_of(const WorldOptions& options) {
  return options.store ? options.store : folder_store(options.rendezvous);
}

}  // namespace

bool wait_until(const std::function<bool()>& done, Clock::time_point deadline) {
  auto pause = std::chrono::microseconds(500);
  while (!done()) {
    const auto now = Clock::now();
    if (now >= deadline) return false;
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, deadline - now));
    pause = std::min(pause * 3 / 2, kLongestPause);
  }
  return true;
}

Rendezvous::Rendezvous(const WorldOptions& options, std::string host)
    : options_(options),
      host_(std::move(host)),
      deadline_(Clock::now() + milliseconds(static_cast<int64_t>(options.start_timeout_s * 1e3))),
      store_(store_of(options)),
      node_(options.rendezvous, host_, options.rank, options.size) {}

std::string Rendezvous::this_host() {
  std::string boot = read_file_if_any("/proc/sys/kernel/random/boot_id");
  while (!boot.empty() && boot.back() == '\n') boot.pop_back();
  return boot;
}

std::optional<std::string> Rendezvous::look_up(const std::string& name) {
  try {
    std::optional<std::string> value = store_->read(name);
    store_problem_.clear();
    return value;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo) throw;
    store_problem_ = error.what();
    return std::nullopt;
  }
}

milliseconds Rendezvous::time_left() const {
  return std::max(milliseconds(1),
                  std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()));
}

std::string Rendezvous::missing_text(const std::vector<int>& missing) const {
  constexpr size_t kNamed = 8;
  std::string names;
  for (size_t i = 0; i < missing.size() && i < kNamed; ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", missing[i]);
  }
  if (missing.size() > kNamed) names += fmt::format(" and {} more", missing.size() - kNamed);
  const bool one = missing.size() == 1;
  return fmt::format(
      "rank{} {} of {} did not arrive within {}: see {} log{}, and whether every worker has the "
      "same rendezvous folder ('{}'{}{})",
      one ? "" : "s", names, options_.size, format_duration(options_.start_timeout_s),
      one ? "its" : "their", one ? "" : "s", store_->text(), store_problem_.empty() ? "" : ": ",
      store_problem_);
}

void Rendezvous::fail_missing() {
  std::vector<int> missing;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!look_up(name_of("arrived", rank))) missing.push_back(rank);
    if (!store_problem_.empty()) fail(ErrorCode::kIo, "{}", store_problem_);
  }
  if (missing.empty()) missing = {0};  // rank 0 did not publish the table
  fail(ErrorCode::kPeerLost, "{}", missing_text(missing));
}

std::string Rendezvous::own_arrival() const {
  return fmt::format("{} {} {}", options_.size, known_or_own(host_, options_.rank),
                     known_or_own(network_namespace(), options_.rank));
}

std::string Rendezvous::collect() {
  const std::string mine = own_arrival();
  std::set<std::string> known;
  int num_known = 0;
  bool one_host = true;
  std::string wrong;
  const auto look = [&] {
    for (const auto& [name, theirs] : store_->entries("arrived-", known)) {
      known.insert(name);
      int rank = -1;
      std::from_chars(name.data() + name.rfind('-') + 1, name.data() + name.size(), rank);
      if (rank < 0 || rank >= options_.size || name != name_of("arrived", rank)) continue;
      const std::string size = theirs.substr(0, theirs.find(' '));
      if (size != fmt::to_string(options_.size)) {
        wrong = fmt::format("rank {} was started in a world of {} ranks, rank 0 in a world of {}",
                            rank, size, options_.size);
      }
      one_host = one_host && theirs == mine;
      ++num_known;
    }
    return num_known == options_.size || !wrong.empty();
  };
  if (!wait_until(look, deadline_)) fail_missing();
  std::random_device random;
  const uint64_t world = uint64_t{random()} << 32 | random();
  return wrong.empty() ? fmt::format("{} {} {}", options_.size, one_host ? 1 : 0, world) : wrong;
}

bool Rendezvous::arrive() {
  const std::string arrived = name_of("arrived", options_.rank);
  std::optional<std::string> taken;
  const auto ask = [&] { return taken = look_up(arrived), store_problem_.empty(); };
  if (!wait_until(ask, deadline_)) fail(ErrorCode::kIo, "{}", store_problem_);
  if (taken) {
    fail(
        ErrorCode::kUsage,
        "rank {} is already in the rendezvous folder '{}': give each start a fresh folder and each "
        "worker its own rank",
        options_.rank, store_->text());
  }
  store_->write(arrived, own_arrival());
  if (options_.rank == 0) {
    const std::string all = collect();
    store_->write(kTable, all);
    node_.put_table(all);
  }
  std::optional<std::string> text;
  const auto look = [&] {
    if (const auto known = node_.find_table()) {
      text.emplace(known->begin(), known->end());
    } else if (node_.may_look(options_.size) && (text = look_up(kTable))) {
      node_.put_table(*text);
    }
    return text.has_value();
  };
  if (!wait_until(look, deadline_)) fail_missing();
  if (text->find_first_not_of("0123456789 ") != text->npos) {
    // The records may be removed when rank 0 ends, so give the others time to read them.
    if (options_.rank == 0) std::this_thread::sleep_for(4 * kLongestPause);
    fail(ErrorCode::kUsage, "{}", *text);
  }
  const std::string size = text->substr(0, text->find(' '));
  if (size != fmt::to_string(options_.size)) {
    fail(ErrorCode::kUsage, "rank 0 was started in a world of {} ranks, rank {} in a world of {}",
         size, options_.rank, options_.size);
  }
  node_.all_met();
  const std::string rest = text->substr(size.size());
  world_ = rest.substr(rest.rfind(' ') + 1);
  return rest.starts_with(" 1 ");
}

void Rendezvous::publish_addresses(const std::map<int, std::vector<char>>& addresses) {
  for (const auto& [peer, address] : addresses) addresses_[peer] = address;
  store_->write(name_of("addresses", options_.rank), to_text(addresses_));
  const std::vector<int>& members = node_.members();
  for (const auto& [peer, address] : addresses) {
    if (std::binary_search(members.begin(), members.end(), peer)) {
      node_.put(peer, options_.rank, address);
    }
  }
}

std::optional<std::vector<char>> Rendezvous::address_of(int rank) {
  if (auto known = node_.find(options_.rank, rank)) return known;
  if (!node_.may_look(rank)) return std::nullopt;
  ++num_looks_;
  const std::string text = look_up(name_of("addresses", rank)).value_or("");
  std::optional<std::vector<char>> own;
  for (auto& [reader, address] : from_text(text, node_.members())) {
    node_.put(reader, rank, address);
    if (reader == options_.rank) own = std::move(address);
  }
  return own;
}

void Rendezvous::publish_cause(const std::string& cause) noexcept {
  try {
    const std::string name = name_of("cause", options_.rank);
    if (!store_->read(name)) store_->write(name, cause);
  } catch (const std::exception&) {  // the store may be gone; the caller throws the cause anyway
  }
}

std::optional<std::string> Rendezvous::cause_of(int rank, milliseconds moment) const noexcept {
  try {
    std::optional<std::string> cause;
    wait_until([&] { return (cause = store_->read(name_of("cause", rank))).has_value(); },
               Clock::now() + moment);
    return cause;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace skein
