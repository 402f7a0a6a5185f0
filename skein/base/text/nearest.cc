#include "skein/base/text/nearest.h"

#include <algorithm>
#include <vector>

namespace skein {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  constexpr size_t kLongestName = 64;  // longer names are not typing mistakes
  if (name.size() > kLongestName) return {};
  std::string_view nearest;
  const int most = std::max(name.size() > 3 ? 2 : 1, static_cast<int>(name.size()) / 3);
  int nearest_distance = most + 1;
  for (const std::string_view candidate : candidates) {
    const int distance = edit_distance(name, candidate);
    if (distance < nearest_distance && distance < static_cast<int>(candidate.size())) {
      nearest_distance = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace skein
