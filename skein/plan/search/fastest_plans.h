// The fastest layouts of a search, the same ones in whatever order threads plan them.
//
// Method   A plan comes with the lower bound that the search had for it. Plans are taken into the
//          list in the order of these bounds, once no layout with a smaller bound is undecided, and
//          none whose bound is above the slowest of the list. A sketch may be slower than its plan,
//          so a list of whatever was planned would depend on the order.
// Threads  one at a time
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "skein/plan/search/layout_search.h"

namespace skein {

// The bound of a layout in seconds, and its number, which orders those that are equal.
using BoundOrder = std::pair<double, int64_t>;
inline constexpr BoundOrder kBehindAll = {std::numeric_limits<double>::infinity(), 0};

class FastestPlans {
 public:
  explicit FastestPlans(size_t num) : num_(num) {}

  void add(BoundOrder bound, SearchResult::FoundLayout found);
  // Takes into the list what is in front of `undecided`.
  void decide(BoundOrder undecided);
  // The same with all there is, where the search ends before it is complete.
  void decide_all();

  // What a layout must not exceed to be in the list; infinite while that is short.
  double slowest_seconds() const;
  bool has_any() const { return !fastest_text_.empty(); }
  // Of all that were added; infinite and "" where there is none.
  double fastest_seconds() const { return fastest_seconds_; }
  const std::string& fastest_text() const { return fastest_text_; }
  std::vector<SearchResult::FoundLayout> take_list() { return std::move(list_); }

 private:
  void insert(SearchResult::FoundLayout found);

  const size_t num_;
  std::vector<SearchResult::FoundLayout> list_;                // fastest first
  std::map<BoundOrder, SearchResult::FoundLayout> undecided_;  // planned before it was their turn
  double fastest_seconds_ = std::numeric_limits<double>::infinity();
  std::string fastest_text_;
};

}  // namespace skein
