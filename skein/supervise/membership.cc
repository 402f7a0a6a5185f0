#include "skein/supervise/membership.h"

#include <algorithm>
#include <utility>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr size_t kMostNames = 50;
// Of so many hosts the leader alone says what all of them wait for.
constexpr size_t kManyHosts = 64;
const std::vector<GenerationRecord::Member> kNoMembers;

std::string names_of(const std::vector<const HostRecord*>& hosts) {
  std::string text;
  for (size_t i = 0; i < std::min(hosts.size(), kMostNames); ++i) {
    text += (text.empty() ? "" : ", ") + hosts[i]->host;
  }
  if (hosts.size() > kMostNames) text += fmt::format(" and {} more", hosts.size() - kMostNames);
  return text.empty() ? "none" : text;
}

bool is_fit(const HostRecord& host, int64_t checked) {
  return host.sick.empty() && host.checked >= checked;
}

bool could_train(const HostRecord& host) {
  return !host.leaving && host.workers > 0 && host.joined <= host.ended;
}

// "; left out: node7: storage: …" for people.
std::string left_out(const std::vector<const HostRecord*>& sick) {
  std::string text;
  for (const HostRecord* host : sick)
    text += fmt::format("; left out: {}: {}", host->host, host->sick);
  return text;
}

std::string machines(const std::string& count) {
  return fmt::format("{} machine{}", count, count == "1" ? "" : "s");
}

}  // namespace

Membership::Membership(const MembershipOptions& options, std::string self,
                       const std::string& succeeds)
    : options_(options), self_(std::move(self)) {
  if (!succeeds.empty()) successors_[succeeds] = self_;
}

bool Membership::says_any_ended(const GenerationRecord& generation) const {
  return std::any_of(generation.members.begin(), generation.members.end(),
                     [&](const auto& member) { return has_ended(member.host, generation.number); });
}

std::vector<std::string> Membership::awaited() const {
  std::vector<std::string> hosts;
  if (!view_.newest || !says_any_ended(*view_.newest)) return hosts;
  for (const auto& member : view_.newest->members) {
    const bool is_asked = view_.is_direct || member.host == view_.leader;
    const bool is_waited_for = is_asked && member.host != self_ && !is_silent(member.host) &&
                               !has_refused(member.host) &&
                               !has_ended(member.host, view_.newest->number);
    if (is_waited_for) hosts.push_back(member.host);
  }
  return hosts;
}

bool Membership::is_live(const HostRecord& record) const {
  return !record.gone && !successors_.contains(record.host) && !is_silent(record.host);
}

bool Membership::has_ended(const std::string& host, int64_t generation) const {
  if (successors_.contains(host)) return true;
  const HostRecord* record = view_.host(host);
  return record != nullptr && (record->gone || record->ended >= generation);
}

bool Membership::is_over(const GenerationRecord& generation) const {
  bool any_ended = false, all_or_silent = true, all_silent_for_long = true;
  for (const auto& member : generation.members) {
    const bool ended = has_ended(member.host, generation.number);
    any_ended |= ended;
    all_or_silent = all_or_silent && (ended || is_silent(member.host));
    all_silent_for_long = all_silent_for_long && is_silent_to_all(member.host);
    if (!all_or_silent && !all_silent_for_long) return false;
  }
  return (any_ended && all_or_silent) || all_silent_for_long;
}

bool Membership::is_newest_over() const {
  if (!facts_.is_over) facts_.is_over = is_over(*view_.newest);
  return *facts_.is_over;
}

bool Membership::is_member() const { return view_.newest.member(self_) != nullptr; }

const std::vector<std::string>& Membership::troubled() const {
  if (facts_.troubled) return *facts_.troubled;
  facts_.troubled.emplace();
  if (!view_.newest) return *facts_.troubled;
  for (const auto& member : view_.newest->members) {
    if (member.host == self_) continue;
    const bool is_in_trouble =
        has_ended(member.host, view_.newest->number) || is_silent(member.host);
    if (is_in_trouble) facts_.troubled->push_back(member.host);
  }
  return *facts_.troubled;
}

// Members of the last generation in their order, so that ranks stay where they are; then the others
// by name.
std::vector<const HostRecord*> Membership::in_order() const {
  std::vector<const HostRecord*> hosts;
  std::vector<bool> added(view_.hosts.size());
  const auto add = [&](const HostRecord* host) {
    if (host == nullptr || !is_live(*host)) return;
    std::vector<bool>::reference is_there = added[static_cast<size_t>(host - view_.hosts.data())];
    if (!is_there) hosts.push_back(host);
    is_there = true;
  };
  if (view_.newest) {
    for (const auto& member : view_.newest->members) add(view_.host(member.host));
  }
  for (const HostRecord& host : view_.hosts) add(&host);
  return hosts;
}

std::vector<const HostRecord*> Membership::candidates(int64_t checked) const {
  std::vector<const HostRecord*> hosts = in_order();
  std::erase_if(hosts, [&](const HostRecord* host) {
    return !could_train(*host) || !is_fit(*host, checked);
  });
  return hosts;
}

std::vector<const HostRecord*> Membership::sick_hosts() const {
  std::vector<const HostRecord*> hosts = in_order();
  std::erase_if(hosts, [](const HostRecord* host) { return host->sick.empty(); });
  return hosts;
}

bool Membership::awaits_check(int64_t next, int num_ready) const {
  int num_pending = 0;
  bool any_member = false;
  for (const HostRecord* host : in_order()) {
    if (!could_train(*host) || !host->sick.empty() || host->checked >= next) continue;
    ++num_pending;
    any_member = any_member || (view_.newest && view_.newest.member(host->host) != nullptr);
  }
  return any_member || usable(num_ready + num_pending) > usable(num_ready);
}

int64_t Membership::check_due() const {
  if (!facts_.check_due) facts_.check_due = find_check_due();
  return *facts_.check_due;
}

int64_t Membership::find_check_due() const {
  if (!updated_) return 0;
  if (!view_.newest) return 1;
  if (view_.newest->verdict) return 0;
  if (!is_newest_over()) return view_.newest->number;
  return successor().verdict ? 0 : view_.newest->number + 1;
}

// A host that leaves acts only where nobody stays.
bool Membership::is_my_turn() const {
  if (!facts_.my_turn) facts_.my_turn = find_my_turn();
  return *facts_.my_turn;
}

bool Membership::find_my_turn() const {
  const HostRecord* first = nullptr;  // that is live
  const auto decides = [&](const HostRecord* host) {
    if (host == nullptr || !is_live(*host)) return false;
    if (first == nullptr) first = host;
    if (!host->leaving) first = host;
    return !host->leaving;
  };
  const auto& members = view_.newest ? view_.newest->members : kNoMembers;
  const bool is_found =
      std::any_of(members.begin(), members.end(),
                  [&](const auto& member) { return decides(view_.host(member.host)); }) ||
      std::any_of(view_.hosts.begin(), view_.hosts.end(),
                  [&](const HostRecord& host) { return decides(&host); });
  return (is_found || first != nullptr) && first->host == self_;
}

bool Membership::could_grow() const {
  if (!facts_.could_grow) facts_.could_grow = find_could_grow();
  return *facts_.could_grow;
}

bool Membership::find_could_grow() const {
  if (!view_.newest || view_.newest->verdict) return false;
  const auto& members = view_.newest->members;
  if (static_cast<int>(members.size()) >= options_.max_hosts) return false;
  const std::vector<const HostRecord*> hosts = candidates(1);
  const auto waiting = std::count_if(hosts.begin(), hosts.end(), [&](const HostRecord* host) {
    return view_.newest.member(host->host) == nullptr;
  });
  const int now = static_cast<int>(members.size());
  return usable(now + static_cast<int>(waiting)) > now;
}

bool Membership::can_do_without_me() const {
  const std::vector<const HostRecord*> hosts = in_order();
  return std::count_if(hosts.begin(), hosts.end(), [&](const HostRecord* host) {
           return !host->leaving && host->host != self_;
         }) >= options_.min_hosts;
}

int Membership::usable(int num_hosts) const {
  int usable = std::min(num_hosts, options_.max_hosts);
  if (!options_.host_counts.empty()) {
    const auto& counts = options_.host_counts;
    const auto above = std::upper_bound(counts.begin(), counts.end(), usable);
    usable = above == counts.begin() ? 0 : *std::prev(above);
  }
  return usable >= options_.min_hosts ? usable : 0;
}

std::optional<GenerationRecord> Membership::next_generation(Millis now) {
  if (view_.newest && (view_.newest->verdict || !is_newest_over())) return std::nullopt;
  const int64_t over = view_.newest ? view_.newest->number : 0;
  if (std::exchange(over_, over) != over || !over_since_) {
    over_since_ = now;
    enough_since_.reset();
  }
  if (!view_.is_direct || !is_my_turn()) return std::nullopt;
  GenerationRecord next = successor();
  if (next.verdict) return next;

  const std::vector<const HostRecord*> hosts = candidates(next.number);
  const int count = static_cast<int>(hosts.size());
  const std::vector<const HostRecord*> live = in_order();
  const auto num_leaving =
      std::count_if(live.begin(), live.end(), [](const HostRecord* host) { return host->leaving; });
  const bool any_leaves = num_leaving > 0;
  const Millis waited = now - *over_since_;
  const bool any_stays = num_leaving < std::ssize(live);
  if (any_leaves && any_stays && waited < options_.settle) return std::nullopt;  // it may follow
  if (usable(count) == 0) {
    enough_since_.reset();
    if (!any_leaves && waited < options_.wait_for_hosts) return std::nullopt;
    next.verdict = any_leaves ? verdict_of_stop()
                              : Verdict{over == 0 ? kExitFailed : kExitRequeue,
                                        missing_hosts_text(waited, hosts)};
    return next;
  }
  if (waited < options_.wait_for_checks && awaits_check(next.number, count)) return std::nullopt;
  if (!enough_since_) enough_since_ = now;
  const bool is_first = over == 0;
  if (is_first && count < options_.max_hosts && now - *enough_since_ < options_.gather) {
    return std::nullopt;
  }
  if (waited < backoff(next)) return std::nullopt;
  for (const HostRecord* host : hosts) {
    if (static_cast<int>(next.members.size()) == usable(count)) break;
    next.members.push_back({host->host, host->workers});
  }
  if (view_.newest) next.vain_regroups = vain_regroups(next);
  return next;
}

std::string Membership::missing_hosts_text(Millis waited,
                                           const std::vector<const HostRecord*>& hosts) const {
  if (options_.max_hosts == 1) {
    return fmt::format("this machine could not train for {} s{}", waited / 1000,
                       left_out(sick_hosts()));
  }
  return fmt::format("launch.nodes asks for {} at least: after {} s these had come: {}{}",
                     machines(std::to_string(options_.min_hosts)), waited / 1000, names_of(hosts),
                     left_out(sick_hosts()));
}

std::string Membership::waits_for() const {
  if (!facts_.waits_for) facts_.waits_for = find_what_it_waits_for();
  return *facts_.waits_for;
}

std::string Membership::find_what_it_waits_for() const {
  if (view_.newest && view_.newest->verdict) return "";
  if (!view_.is_direct && view_.hosts.size() > kManyHosts) {
    return fmt::format("machines, as {} says, which leads", view_.leader);
  }
  if (view_.newest && !is_newest_over()) {
    for (const auto& member : view_.newest->members) {
      if (!has_ended(member.host, view_.newest->number) && !is_silent(member.host)) {
        return fmt::format("{} to end its workers", member.host);
      }
    }
    return "hosts that are silent to be lost for certain";
  }
  const std::vector<const HostRecord*> hosts = candidates(0);
  const auto& [least, most] = std::pair(options_.min_hosts, options_.max_hosts);
  const std::string wanted =
      least == most ? std::to_string(most) : fmt::format("{} to {}", least, most);
  if (static_cast<int>(hosts.size()) >= most) return "";
  return fmt::format("{}; there {}: {}{}", machines(wanted),
                     hosts.size() == 1 ? "is 1" : fmt::format("are {}", hosts.size()),
                     names_of(hosts), left_out(sick_hosts()));
}

}  // namespace skein
