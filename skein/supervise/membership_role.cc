// How a host looks at the store, and when it takes the lead (digest.h).
#include <algorithm>
#include <limits>

#include "skein/supervise/membership.h"

namespace skein {
namespace {

// At the start of a large run, so that not all of its hosts find that nobody leads.
constexpr int kSmallRun = 16;
constexpr Millis kStartPerHost = 2, kLongestStart = 10'000;

}  // namespace

double chance_of(const std::string& text, int64_t number) {
  uint64_t hash = 0xcbf29ce484222325 ^ static_cast<uint64_t>(number);
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  hash ^= hash >> 32;
  hash *= 0x9e3779b97f4a7c15;
  return static_cast<double>(hash >> 11) / static_cast<double>(uint64_t{1} << 53);
}

// Of the live hosts; the last of all where the list does not have this one yet.
size_t Membership::place_in_turn() const {
  const std::vector<const HostRecord*> hosts = in_order();
  const auto own = std::find_if(hosts.begin(), hosts.end(),
                                [&](const HostRecord* host) { return host->host == self_; });
  return own == hosts.end() ? std::numeric_limits<uint16_t>::max()
                            : static_cast<size_t>(own - hosts.begin());
}

StoreRole Membership::role() const {
  if (view_.leader.empty()) {
    const Millis most = options_.max_hosts <= kSmallRun
                            ? 0
                            : std::min(kLongestStart, kStartPerHost * options_.max_hosts);
    const auto delay = static_cast<Millis>(chance_of(self_, 0) * static_cast<double>(most));
    return lived_ >= delay ? StoreRole::kFollowOrLead : StoreRole::kFollow;
  }
  const auto successor = successors_.find(view_.leader);
  const bool replaces_it = successor != successors_.end() && successor->second == self_;
  if (view_.leader == self_ || replaces_it || is_my_turn()) return StoreRole::kLead;
  const Millis still = lived_ - leader_since_;
  if (still < kHeirs) return StoreRole::kFollow;
  const size_t place = place_in_turn();
  const Millis patience = has_refused(view_.leader) ? options_.refused_silence : options_.silence;
  if (still >= patience + std::min(kMaxStagger, kStagger * static_cast<Millis>(place))) {
    return StoreRole::kLead;
  }
  return place < kNumHeirs ? StoreRole::kHeir : StoreRole::kFollow;
}

}  // namespace skein
