#include "skein/plan/search/fastest_plans.h"

#include <algorithm>

namespace skein {

void FastestPlans::add(BoundOrder bound, SearchResult::FoundLayout found) {
  if (!has_any() || found.plan.step.step_seconds < fastest_seconds_) {
    fastest_seconds_ = found.plan.step.step_seconds;
    fastest_text_ = layout_text(found.config);
  }
  undecided_.emplace(bound, std::move(found));
}

void FastestPlans::decide(BoundOrder undecided) {
  while (!undecided_.empty() && undecided_.begin()->first < undecided &&
         undecided_.begin()->first.first <= slowest_seconds()) {
    insert(std::move(undecided_.begin()->second));
    undecided_.erase(undecided_.begin());
  }
}

void FastestPlans::decide_all() {
  for (auto& [bound, found] : undecided_) insert(std::move(found));
  undecided_.clear();
}

double FastestPlans::slowest_seconds() const {
  return list_.size() < num_ ? std::numeric_limits<double>::infinity()
                             : list_.back().plan.step.step_seconds;
}

void FastestPlans::insert(SearchResult::FoundLayout found) {
  const auto time = [](const SearchResult::FoundLayout& one) {
    return std::pair(one.plan.step.step_seconds, one.order);
  };
  const auto at = std::upper_bound(list_.begin(), list_.end(), found,
                                   [&](const auto& a, const auto& b) { return time(a) < time(b); });
  list_.insert(at, std::move(found));
  if (list_.size() > num_) list_.pop_back();
}

}  // namespace skein
