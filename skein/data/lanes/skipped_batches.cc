#include "skein/data/lanes/skipped_batches.h"

#include <algorithm>
#include <charconv>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"

namespace skein {
namespace {

constexpr int64_t kMostBatches = int64_t{1} << 53;

// A batch number without sign, blanks and trailing characters; 0: the text is none.
int64_t batch_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number >= 1 && number <= kMostBatches ? number : 0;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n";
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace

SkippedBatches SkippedBatches::parse(std::string_view text) {
  SkippedBatches skipped;
  if (trimmed(text).empty()) return skipped;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view item = trimmed(text.substr(begin, comma - begin));
    const size_t dash = item.find('-');
    const int64_t first = batch_number(trimmed(item.substr(0, dash)));
    const int64_t last = dash == item.npos ? first : batch_number(trimmed(item.substr(dash + 1)));
    if (first == 0 || last < first) {
      fail(ErrorCode::kUsage,
           "skip_batches is \"{}\", in which \"{}\" is no batch: expected numbers from 1 and "
           "ranges of them, such as \"17, 40-44\"",
           text, item);
    }
    skipped.add(first, last);
    begin = comma + 1;
  }
  return skipped;
}

SkippedBatches SkippedBatches::from_json(const Json& json, const std::string& where) {
  const auto expected = [&](const Json& found) {
    fail(ErrorCode::kInvalid,
         "{}: found {}, expected a list of [first, last] batches, rising and apart", where,
         ascii_json_text(found));
  };
  const auto is_batch = [](const Json& value) {
    return value.is_number_integer() && value >= 1 && value <= kMostBatches;
  };
  if (!json.is_array()) expected(json);
  SkippedBatches skipped;
  for (const Json& range : json) {
    if (!range.is_array() || range.size() != 2 || !is_batch(range[0]) || !is_batch(range[1])) {
      expected(range);
    }
    const int64_t first = range[0].get<int64_t>(), last = range[1].get<int64_t>();
    const bool apart = skipped.empty() || first > skipped.ranges_.back().last + 1;
    if (last < first || !apart) expected(range);
    skipped.ranges_.push_back({first, last});
  }
  return skipped;
}

std::string SkippedBatches::text() const {
  std::string text;
  for (const Range& range : ranges_) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", range.first);
    if (range.last > range.first) text += fmt::format("-{}", range.last);
  }
  return text;
}

Json SkippedBatches::to_json() const {
  Json json = Json::array();
  for (const Range& range : ranges_) json.push_back({range.first, range.last});
  return json;
}

void SkippedBatches::add(int64_t first, int64_t last) {
  const auto begin = std::find_if(ranges_.begin(), ranges_.end(),
                                  [&](const Range& range) { return range.last >= first - 1; });
  const auto end = std::find_if(begin, ranges_.end(),
                                [&](const Range& range) { return range.first > last + 1; });
  if (begin != end) {
    first = std::min(first, begin->first);
    last = std::max(last, std::prev(end)->last);
  }
  ranges_.insert(ranges_.erase(begin, end), {first, last});
}

void SkippedBatches::add(const SkippedBatches& others) {
  for (const Range& range : others.ranges_) add(range.first, range.last);
}

bool SkippedBatches::contains(int64_t batch) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& range) {
    return range.first <= batch && batch <= range.last;
  });
}

int64_t SkippedBatches::batch_of(int64_t step) const {
  int64_t batch = step;
  for (const Range& range : ranges_) {
    if (range.first > batch) break;
    batch += range.last - range.first + 1;
  }
  return batch;
}

int64_t SkippedBatches::steps_before(int64_t batch) const {
  int64_t steps = batch - 1;
  for (const Range& range : ranges_) {
    if (range.first >= batch) break;
    steps -= std::min(range.last, batch - 1) - range.first + 1;
  }
  return steps;
}

std::optional<int64_t> SkippedBatches::first_lacking(const SkippedBatches& others,
                                                     int64_t last) const {
  for (const Range& other : others.ranges_) {
    if (other.first > last) break;
    const auto own = std::find_if(ranges_.begin(), ranges_.end(), [&](const Range& range) {
      return range.first <= other.first && other.first <= range.last;
    });
    if (own == ranges_.end()) return other.first;
    if (own->last < std::min(other.last, last)) return own->last + 1;
  }
  return std::nullopt;
}

}  // namespace skein
