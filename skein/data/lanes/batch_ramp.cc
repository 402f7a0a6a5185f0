#include "skein/data/lanes/batch_ramp.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr std::string_view kUntil = "until";
constexpr int64_t kMost = int64_t{1} << 28;  // of rows, and of batches

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n";
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// 0: the text is no count from 1.
int64_t count_of(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number >= 1 && number <= kMost ? number : 0;
}

}  // namespace

BatchRamp BatchRamp::parse(std::string_view text, int64_t global_sequences) {
  BatchRamp ramp(global_sequences);
  if (trimmed(text).empty()) return ramp;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view item = trimmed(text.substr(begin, comma - begin));
    const size_t until = std::min(item.find(kUntil), item.size());
    const int64_t sequences = count_of(trimmed(item.substr(0, until)));
    const int64_t last =
        until == item.size() ? 0 : count_of(trimmed(item.substr(until + kUntil.size())));
    if (sequences == 0 || last == 0) {
      fail(ErrorCode::kUsage,
           "ramp is \"{}\", in which \"{}\" is no part: expected rows and the last step that has "
           "them, such as \"64 until 1000, 256 until 5000\"",
           text, item);
    }
    const Level before = ramp.parts_.empty() ? Level{0, 0} : ramp.parts_.back();
    if (sequences <= before.sequences || last <= before.last_batch) {
      fail(ErrorCode::kUsage,
           "ramp is \"{}\", in which {} rows until step {} follow {} until {}: expected more rows, "
           "and a later step",
           text, sequences, last, before.sequences, before.last_batch);
    }
    ramp.parts_.push_back({sequences, last});
    begin = comma + 1;
  }
  if (ramp.parts_.back().sequences >= global_sequences) {
    fail(ErrorCode::kUsage,
         "ramp is \"{}\", which ends with {} rows, and global_sequences, which follows it, is {}: "
         "expected it to be larger",
         text, ramp.parts_.back().sequences, global_sequences);
  }
  return ramp;
}

int64_t BatchRamp::size(int64_t batch) const {
  for (const Level& part : parts_) {
    if (batch <= part.last_batch) return part.sequences;
  }
  return sequences_;
}

int64_t BatchRamp::rows(int64_t first, int64_t last) const {
  int64_t rows = 0;
  for (const Level& part : parts_) {
    const int64_t end = std::min(last, part.last_batch);
    if (first > end) continue;
    rows += (end - first + 1) * part.sequences;
    first = end + 1;
  }
  return rows + std::max<int64_t>(0, last - first + 1) * sequences_;
}

int64_t BatchRamp::batches_of(double tokens, int64_t tokens_of_row) const {
  const auto batches_for = [&](int64_t sequences) {
    return std::ceil(tokens / static_cast<double>(sequences * tokens_of_row));
  };
  int64_t batches = 0;
  for (const Level& part : parts_) {
    const int64_t there = part.last_batch - batches;
    const double needed = batches_for(part.sequences);
    if (needed <= static_cast<double>(there)) return batches + static_cast<int64_t>(needed);
    tokens -= static_cast<double>(there * part.sequences * tokens_of_row);
    batches = part.last_batch;
  }
  constexpr double kMostSteps = 9e15;  // below 2^53
  return batches + static_cast<int64_t>(std::min(batches_for(sequences_), kMostSteps));
}

std::vector<int64_t> BatchRamp::sizes() const {
  std::vector<int64_t> sizes;
  for (const Level& part : parts_) sizes.push_back(part.sequences);
  sizes.push_back(sequences_);
  return sizes;
}

int64_t BatchRamp::divisor() const {
  int64_t divisor = sequences_;
  for (const Level& part : parts_) divisor = std::gcd(divisor, part.sequences);
  return divisor;
}

int64_t lanes_of_rows(int64_t lanes, int64_t sequences, int64_t rows) {
  const int64_t apart = std::gcd(lanes, sequences);
  if (rows >= apart) return lanes;
  return rows * (lanes / apart);
}

}  // namespace skein
