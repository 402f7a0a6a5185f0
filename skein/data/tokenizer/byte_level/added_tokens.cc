#include "skein/data/tokenizer/byte_level/added_tokens.h"

#include <algorithm>
#include <functional>

#include "skein/base/text/utf8.h"
#include "skein/bpe/unicode/properties.h"

namespace skein {
namespace {

bool is_between_words(std::string_view text, size_t begin, size_t end) {
  const bpe::CodePoints& word = bpe::unicode_added_word();
  const std::string_view before = text.substr(0, begin), behind = text.substr(end);
  return (before.empty() || !word.contains(utf8::last_character(before).code)) &&
         (behind.empty() || !word.contains(utf8::first_character(behind).code));
}

}  // namespace

void AddedTokens::add(const AddedToken& token, std::string_view pattern) {
  if (pattern.empty()) return;
  if (const int32_t place = patterns_.find(pattern); place >= 0) {
    tokens_[static_cast<size_t>(place)] = token;
  } else {
    patterns_.add(pattern, static_cast<int32_t>(tokens_.size()));
    tokens_.push_back(token);
    sizes_.push_back(pattern.size());
    std::sort(sizes_.begin(), sizes_.end(), std::greater<>());
    sizes_.erase(std::unique(sizes_.begin(), sizes_.end()), sizes_.end());
    begins_.set(static_cast<uint8_t>(pattern[0]));
  }
  any_plain_ = any_plain_ || !token.special;
}

bool AddedTokens::holds(int32_t id) const {
  return std::any_of(tokens_.begin(), tokens_.end(),
                     [&](const AddedToken& token) { return token.id == id; });
}

AddedTokens special_of(const std::vector<AddedToken>& tokens) {
  AddedTokens special;
  for (const AddedToken& token : tokens) {
    if (token.special) special.add(token, token.text);
  }
  return special;
}

bool AddedTokens::find(std::string_view text, size_t from, bool special, TokenMatch& found) const {
  if (!any(special)) return false;
  for (size_t at = from; at < text.size();) {
    size_t step = 1;
    if (begins_[static_cast<uint8_t>(text[at])]) {
      for (const size_t size : sizes_) {
        if (size > text.size() - at) continue;
        const int32_t place = patterns_.find(text.substr(at, size));
        if (place < 0) continue;
        const AddedToken& token = tokens_[static_cast<size_t>(place)];
        const bool is_hidden = (token.special && !special) ||
                               (token.single_word && !is_between_words(text, at, at + size));
        if (!is_hidden) {
          found = {&token, at, at + size};
          return true;
        }
        step = size;
        break;
      }
    }
    at += step;
  }
  return false;
}

void AddedTokens::widen(std::string_view text, const AddedToken& token, size_t behind,
                        size_t& begin, size_t& end) {
  const bpe::CodePoints& spaces = bpe::unicode_spaces();
  while (token.lstrip && begin > behind) {
    const utf8::Character last = utf8::last_character(text.substr(0, begin));
    if (!spaces.contains(last.code)) break;
    begin -= static_cast<size_t>(last.size);
  }
  while (token.rstrip && end < text.size()) {
    const utf8::Character first = utf8::first_character(text.substr(end));
    if (!spaces.contains(first.code)) break;
    end += static_cast<size_t>(first.size);
  }
}

}  // namespace skein
