#include "skein/supervise/stragglers.h"

#include <algorithm>

#include "skein/base/error.h"

namespace skein {
namespace {

struct RankWork {
  int rank = 0;
  std::string host;
  int64_t us = 0;
};

// Empty until every member has said it.
std::vector<RankWork> work_of_all(const StoreView& view) {
  std::vector<RankWork> work;
  for (const auto& member : view.newest->members) {
    const HostRecord* host = view.host(member.host);
    const bool says = host != nullptr && host->joined == view.newest->number &&
                      host->work_us.size() == static_cast<size_t>(member.workers);
    if (!says) return {};
    for (const int64_t us : host->work_us) {
      work.push_back({static_cast<int>(work.size()), member.host, us});
    }
  }
  return work;
}

int64_t median_of_others(const std::vector<RankWork>& peers, int rank) {
  std::vector<int64_t> others;
  for (const RankWork& peer : peers) {
    if (peer.rank != rank) others.push_back(peer.us);
  }
  const auto middle = others.begin() + std::ssize(others) / 2;
  std::nth_element(others.begin(), middle, others.end());
  return *middle;
}

}  // namespace

std::string straggler_text(const Straggler& straggler) {
  return fmt::format(
      "rank {} on {} is slow: its own part of a step takes {:.1f} ms, the median of its peers "
      "{:.1f} ms, for {} s. All ranks wait for it: look for other programs, heat or a broken part "
      "there",
      straggler.rank, straggler.host, static_cast<double>(straggler.work_us) / 1e3,
      static_cast<double>(straggler.median_us) / 1e3, kStragglerTime / 1000);
}

bool WorkMeter::add(int index, int64_t step, int64_t work_us, Millis now) {
  Begin& begin = begins_.at(static_cast<size_t>(index));
  if (begin.time == 0 || step < begin.step) {
    begin = {step, work_us, now, std::nullopt};
    return false;
  }
  if (now - begin.time < kWorkWindow || step == begin.step) return false;
  begin = {step, work_us, now, (work_us - begin.work_us) / (step - begin.step)};
  return true;
}

std::vector<int64_t> WorkMeter::us_per_step() const {
  std::vector<int64_t> result;
  for (const Begin& begin : begins_) {
    if (!begin.us_per_step) return {};
    result.push_back(std::max<int64_t>(0, *begin.us_per_step));
  }
  return result;
}

std::vector<Straggler> Stragglers::find(const StoreView& view, Millis now) {
  if (!view.newest) return {};
  if (std::exchange(generation_, view.newest->number) != view.newest->number) slow_.clear();
  const std::vector<RankWork> work = work_of_all(view);
  if (work.empty()) slow_.clear();
  std::vector<Straggler> found;
  const size_t stage_size = std::max<size_t>(1, work.size() / static_cast<size_t>(stages_));
  for (size_t first = 0; first < work.size(); first += stage_size) {
    const auto begin = work.begin() + static_cast<ptrdiff_t>(first);
    const auto count = static_cast<ptrdiff_t>(std::min(stage_size, work.size() - first));
    const std::vector<RankWork> peers(begin, begin + count);
    if (peers.size() < 2) continue;
    for (const RankWork& peer : peers) {
      const int64_t median = median_of_others(peers, peer.rank);
      if (static_cast<double>(peer.us) <= kStragglerMargin * static_cast<double>(median)) {
        slow_.erase(peer.rank);
        continue;
      }
      Slow& slow = slow_.try_emplace(peer.rank, Slow{now, false}).first->second;
      if (now - slow.since < kStragglerTime || std::exchange(slow.named, true)) continue;
      found.push_back({peer.rank, peer.host, peer.us, median});
    }
  }
  return found;
}

}  // namespace skein
