#include "skein/bpe/unicode/code_points.h"

#include <algorithm>

namespace skein::bpe {

CodePoints::CodePoints(std::initializer_list<Range> ranges) : CodePoints(of(ranges)) {}

CodePoints CodePoints::of(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end());
  CodePoints set;
  for (const Range& range : ranges) {
    if (!set.ranges_.empty() && range.first <= set.ranges_.back().second + 1) {
      set.ranges_.back().second = std::max(set.ranges_.back().second, range.second);
    } else {
      set.ranges_.push_back(range);
    }
  }
  return set;
}

void CodePoints::add(const CodePoints& other) {
  std::vector<Range> all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  *this = of(std::move(all));
}

CodePoints CodePoints::complement() const {
  CodePoints others;
  char32_t next = 0;
  for (const auto& [first, last] : ranges_) {
    if (first > next) others.ranges_.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= kLast) others.ranges_.emplace_back(next, kLast);
  return others;
}

CodePoints CodePoints::both(const CodePoints& other) const {
  CodePoints outside = complement();
  outside.add(other.complement());
  return outside.complement();
}

CodePoints CodePoints::either(const CodePoints& other) const {
  CodePoints one = both(other.complement());
  one.add(other.both(complement()));
  return one;
}

bool CodePoints::contains(char32_t code) const {
  const auto behind = std::upper_bound(ranges_.begin(), ranges_.end(), Range{code, kLast});
  return behind != ranges_.begin() && std::prev(behind)->second >= code;
}

}  // namespace skein::bpe
