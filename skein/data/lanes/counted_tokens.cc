#include "skein/data/lanes/counted_tokens.h"

#include <algorithm>

#include "skein/data/tokenizer/token_ends.h"
#include "skein/data/tokenizer/tokenizer.h"

namespace skein {
namespace {

// Where a border lies among the tokens: behind `before` of them, and inside the next one if it is
// `straddled`.
struct Border {
  size_t before = 0;
  bool straddled = false;
};

class Borders {
 public:
  Borders(const Tokenizer& tokenizer, SpecialTokens special, std::string_view text,
          std::span<const int32_t> ids)
      : tokenizer_(tokenizer), special_(special), text_(text), ids_(ids) {}

  // Bytes in rising order.
  Border find(size_t byte) {
    if (byte == 0) return {};
    if (byte >= text_.size()) return {ids_.size(), false};
    if (byte == byte_) return last_;
    if (!find_from_last(byte)) find_from_beginning(byte);
    byte_ = byte;
    return last_;
  }

 private:
  bool find_from_last(size_t byte) {
    if (last_.straddled) return false;
    encode(text_.substr(byte_, byte - byte_));
    const std::span<const int32_t> rest = ids_.subspan(last_.before);
    if (part_.size() > rest.size() || !std::equal(part_.begin(), part_.end(), rest.begin())) {
      return false;
    }
    last_.before += part_.size();
    return true;
  }

  void find_from_beginning(size_t byte) {
    encode(text_.substr(0, byte));
    const auto common = std::mismatch(part_.begin(), part_.end(), ids_.begin(), ids_.end());
    last_.before = static_cast<size_t>(common.first - part_.begin());
    last_.straddled = common.first != part_.end();
  }

  void encode(std::string_view part) {
    part_.clear();
    tokenizer_.encode_as(special_, part, part_);
  }

  const Tokenizer& tokenizer_;
  const SpecialTokens special_;
  std::string_view text_;
  std::span<const int32_t> ids_;
  std::vector<int32_t> part_;
  size_t byte_ = 0;  // of the last border
  Border last_;
};

void count_overlaps(std::span<const size_t> ends, std::span<const ByteRange> spans,
                    std::vector<uint8_t>& counts) {
  int64_t begin = 0;
  auto span = spans.begin();
  for (size_t i = 0; i < ends.size(); ++i) {
    const auto end = static_cast<int64_t>(ends[i]);
    while (span != spans.end() && (span->size() <= 0 || span->end <= begin)) ++span;
    if (span == spans.end()) return;
    // One that has no bytes of its own, a blank before the text, goes with the byte behind it.
    counts[i] = std::max(end, begin + 1) > span->begin ? 1 : 0;
    begin = end;
  }
}

}  // namespace

std::vector<uint8_t> counted_tokens(const Tokenizer& tokenizer, SpecialTokens special,
                                    std::string_view text, std::span<const int32_t> ids,
                                    std::span<const ByteRange> spans) {
  std::vector<uint8_t> counts(ids.size(), 0);
  if (spans.empty()) return counts;
  if (const auto ends = token_ends(tokenizer, special, text, ids)) {
    count_overlaps(*ends, spans, counts);
    return counts;
  }
  Borders borders(tokenizer, special, text, ids);
  for (const ByteRange& span : spans) {
    if (span.size() <= 0) continue;
    const size_t begin = borders.find(static_cast<size_t>(span.begin)).before;
    const Border end = borders.find(static_cast<size_t>(span.end));
    const size_t behind = std::min(end.before + (end.straddled ? 1 : 0), ids.size());
    for (size_t i = begin; i < behind; ++i) counts[i] = 1;
  }
  return counts;
}

}  // namespace skein
