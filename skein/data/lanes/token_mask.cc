#include "skein/data/lanes/token_mask.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/numbers/philox.h"

namespace skein {
namespace {

constexpr double kWords = 0x1p32;
constexpr auto kMasked = static_cast<uint32_t>(0.8 * kWords);
constexpr auto kReplaced = static_cast<uint32_t>(0.9 * kWords);

int32_t find_mask_id(const Tokenizer& tokenizer, const std::string& asked) {
  if (asked.empty()) {
    if (tokenizer.mask_id() >= 0) return tokenizer.mask_id();
    fail(ErrorCode::kUsage,
         "data.objective is \"masked\", and the tokenizer names no mask_token: expected "
         "data.mask_token, the text of a special token of it; `skein data tokenizer --kind "
         "byte-level --special \"<|endoftext|>\" --special \"<|mask|>\"` makes a tokenizer with "
         "one");
  }
  std::vector<int32_t> ids;
  tokenizer.parse(asked, ids);
  if (ids.size() == 1 && tokenizer.special_tokens().holds(ids.front())) return ids.front();
  fail(ErrorCode::kUsage,
       "data.mask_token is \"{}\": expected the text of a special token of the tokenizer", asked);
}

}  // namespace

TokenMask::TokenMask(const Tokenizer& tokenizer, const MaskOptions& options, int64_t vocab_size,
                     uint64_t seed)
    : probability_(options.probability),
      whole_words_(options.whole_words),
      seed_(seed),
      mask_id_(find_mask_id(tokenizer, options.token)),
      num_tokens_(static_cast<uint64_t>(std::min<int64_t>(vocab_size, tokenizer.vocab_size()))) {
  for (int32_t id = 0; id < static_cast<int32_t>(num_tokens_); ++id) {
    const bool is_special = id == tokenizer.bos_id() || id == tokenizer.eos_id() ||
                            id == mask_id_ || tokenizer.special_tokens().holds(id);
    is_special_.push_back(is_special ? 1 : 0);
    begins_word_.push_back(whole_words_ && tokenizer.has_token(id) && tokenizer.begins_word(id));
  }
}

int32_t TokenMask::seen(int32_t token, const std::array<uint32_t, 4>& words) const {
  if (words[1] < kMasked) return mask_id_;
  if (words[1] < kReplaced) return static_cast<int32_t>(words[2] * num_tokens_ >> 32);
  return token;
}

void TokenMask::apply(int64_t row, std::span<const RowSegment> segments, std::span<int32_t> tokens,
                      std::span<int32_t> labels) const {
  const Philox random(seed_, RandomPurpose::kMasking, static_cast<uint32_t>(row),
                      static_cast<uint32_t>(row >> 32));
  std::fill(labels.begin(), labels.end(), kNoLabel);
  for (const RowSegment& segment : segments) {
    bool is_chosen = false, begins = true;
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      const auto at = static_cast<size_t>(i);
      const int32_t token = tokens[at];
      if (is_special_[static_cast<size_t>(token)] != 0) {
        begins = true;
        continue;
      }
      const Philox::Block words = random.block(static_cast<uint64_t>(i));
      if (!whole_words_ || begins || begins_word_[static_cast<size_t>(token)] != 0) {
        is_chosen = words[0] < probability_ * kWords;
      }
      begins = false;
      if (!is_chosen) continue;
      labels[at] = token;
      tokens[at] = seen(token, words);
    }
  }
}

}  // namespace skein
