// What a host has seen of the others, itself or in the leader's list, and for how long nothing new.
#include <algorithm>
#include <tuple>
#include <utility>

#include "skein/supervise/membership.h"

namespace skein {
namespace {

// An exchange with the store that comes later than this after the one before does not prove that
// the store was at hand all the while.
constexpr Millis kLongestGap = 2'000;
// In which a host that lives has written its record again.
constexpr Millis kTwoBeats = 2'000;

}  // namespace

void Membership::update(StoreView view, Millis now) {
  const Millis passed = updated_ ? std::min(now - *updated_, kLongestGap) : 0;
  lived_ += passed;
  if (view.is_direct && view_.is_direct) lived_direct_ += passed;
  if (!updated_) started_ = now;
  updated_ = now;
  if (view.is_direct) view.sort();
  // Caches of a network file system may show something older than before.
  if (view.newest.number() < view_.newest.number()) view.newest = view_.newest;
  if (view.leader_moved) leader_since_ = lived_;
  const StoreView before = view_;
  if (view.is_direct) {
    update_records(std::move(view), passed);
  } else {
    update_list(std::move(view));
  }
  note_news(before);
}

void Membership::update_records(StoreView view, Millis passed) {
  const auto is_older = [&](const HostRecord& host) {
    const HostRecord* before = view_.host(host.host);
    return before != nullptr && before->beat > host.beat ? before : nullptr;
  };
  if (std::any_of(view.hosts.begin(), view.hosts.end(), is_older)) {
    for (HostRecord& host : view.hosts.change()) {
      if (const HostRecord* before = is_older(host)) host = *before;
    }
  }
  for (const HostRecord& host : view.hosts) {
    Seen& seen = seen_[host.host];
    if (seen.beat != host.beat) {
      const Millis quiet = seen.beat < 0 ? std::min(lived_, quiet_time(host.host)) : 0;
      seen = {.beat = host.beat, .since = lived_, .since_direct = lived_direct_, .listed = quiet};
    } else if (seen.listed > 0 && lived_ - seen.since >= kTwoBeats) {
      seen.since -= std::exchange(seen.listed, 0);  // it stands still, as the list said
    }
    if (!host.succeeds.empty()) successors_[host.succeeds] = host.host;
  }
  for (const std::string& host : view.unread) {
    Seen& seen = seen_[host];
    seen.unread = std::min(seen.unread + passed, kMostUnread);
  }
  view_ = std::move(view);
}

void Membership::update_list(StoreView view) {
  const bool is_new = !view.hosts.is_same_list(view_.hosts);
  if (is_new) {
    listed_ = lived_;
    for (const HostRecord& host : view.hosts) {
      if (!host.succeeds.empty()) successors_[host.succeeds] = host.host;
    }
  }
  if (view.leader_moved) {
    refused_at_.erase(view.leader);
    Seen& seen = seen_[view.leader];
    if (seen.beat != view.leader_beat) {
      seen = {.beat = view.leader_beat, .since_direct = lived_direct_};
    }
    seen.since = lived_;
  }
  view_ = std::move(view);
}

// A leader sees beats at each look, a follower nothing new for most of the time.
void Membership::note_news(const StoreView& before) {
  size_t num_quiet = !view_.leader.empty() && is_silent(view_.leader) ? 1 : 0;
  if (!view_.is_direct && view_.quiet) {
    for (const auto& [host, time] : *view_.quiet) num_quiet += is_silent(host) ? 1 : 0;
  }
  const bool has_same_members = !view_.is_direct && !before.is_direct &&
                                view_.hosts.is_same_list(before.hosts) &&
                                view_.newest.number() == before.newest.number();
  if (!has_same_members) find_missing();
  for (const std::string& host : missing_) num_quiet += is_silent(host) ? 1 : 0;
  const bool is_same = has_same_members && view_.leader == before.leader && num_quiet == num_quiet_;
  num_quiet_ = num_quiet;
  if (is_same) return;
  facts_ = {};
  const auto state = [](const HostRecord& host) {
    return std::tie(host.joined, host.ended, host.checked, host.leaving, host.gone, host.sick);
  };
  const bool is_news =
      view_.newest.number() != before.newest.number() || view_.leader != before.leader ||
      !std::equal(view_.hosts.begin(), view_.hosts.end(), before.hosts.begin(), before.hosts.end(),
                  [&](const HostRecord& a, const HostRecord& b) { return state(a) == state(b); });
  if (is_news) ++news_;
}

void Membership::find_missing() {
  missing_.clear();
  if (view_.is_direct || !view_.newest) return;
  for (const auto& member : view_.newest->members) {
    if (view_.host(member.host) == nullptr) missing_.push_back(member.host);
  }
}

// By the leader's list; 0 where that says nothing.
Millis Membership::quiet_time(const std::string& host) const {
  if (!view_.quiet) return 0;
  const auto quiet = view_.quiet->find(host);
  return quiet == view_.quiet->end() ? 0 : quiet->second + lived_ - listed_;
}

bool Membership::is_silent(const std::string& host, Millis time) const {
  if (host == self_) return false;
  if (!view_.is_direct && host != view_.leader && view_.host(host) != nullptr) {
    return quiet_time(host) >= time;
  }
  if (!view_.is_direct && view_.hosts.empty()) return false;  // there is no list yet
  const auto seen = seen_.find(host);
  // The record of a member may be missing: the store has lost it, or it was never seen.
  if (seen == seen_.end()) return lived_ >= time;
  return lived_ - seen->second.since - seen->second.unread >= time;
}

bool Membership::is_silent_to_all(const std::string& host) const {
  if (host == self_) return false;
  // What a list says is enough to prepare for the next generation, not to begin it.
  if (!view_.is_direct) return is_silent(host, options_.fence);
  if (view_.unread.contains(host)) return false;
  const auto seen = seen_.find(host);
  return lived_direct_ - (seen == seen_.end() ? 0 : seen->second.since_direct) >= options_.fence;
}

bool Membership::has_refused(const std::string& host) const {
  const auto refused = refused_at_.find(host);
  if (refused == refused_at_.end()) return false;
  if (!view_.is_direct) return host == view_.leader;
  const HostRecord* record = view_.host(host);
  return record != nullptr && record->beat == refused->second;
}

bool Membership::is_silent(const std::string& host) const {
  return is_silent(host, has_refused(host) ? options_.refused_silence : options_.silence);
}

void Membership::host_refuses(const std::string& host) {
  facts_ = {};
  if (!view_.is_direct) {
    if (host == view_.leader) refused_at_[host] = view_.leader_beat;
  } else if (const HostRecord* record = view_.host(host)) {
    refused_at_[host] = record->beat;
  }
}

}  // namespace skein
