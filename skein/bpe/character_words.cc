#include "skein/bpe/character_words.h"

#include <fmt/format.h>

#include "skein/base/text/utf8.h"
#include "skein/bpe/steps/decode_steps.h"

namespace skein::bpe {

void CharacterWords::read(const Vocabulary& vocabulary) {
  ascii_.fill(-1);
  vocabulary.for_each([&](std::string_view text, int32_t id) {
    if (text.empty()) return;
    const utf8::Character first = utf8::first_character(text);
    if (first.code == utf8::kInvalid || static_cast<size_t>(first.size) != text.size()) return;
    if (first.code < 128) {
      ascii_[first.code] = id;
    } else {
      others_[first.code] = id;
    }
  });
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    byte_ids_[byte] =
        options_.byte_fallback ? vocabulary.find(fmt::format("<0x{:02X}>", byte)) : -1;
    has_all_bytes_ &= byte_ids_[byte] >= 0;
  }
}

// Where tokens merge whose text is not that of the characters they stand for, nothing is cut.
void CharacterWords::add_seam(std::string_view left, std::string_view right) {
  if (left.empty() || right.empty()) return;
  if (byte_of_fallback(left) >= 0 || byte_of_fallback(right) >= 0) options_.cuts = false;
  const char32_t before = utf8::last_character(left).code;
  const char32_t behind = utf8::first_character(right).code;
  joined_.add(static_cast<int32_t>(before), static_cast<int32_t>(behind), {0, 0});
  const size_t row = small(before), column = small(behind);
  if (row < kSmall && column < kSmall) joined_small_[row].set(column);
}

bool CharacterWords::is_joined(char32_t left, char32_t right) const {
  const size_t small_left = small(left), small_right = small(right);
  if (small_left < kSmall && small_right < kSmall) {
    if (joined_small_[small_left][small_right]) return true;
  } else if (joined_.find(static_cast<int32_t>(left), static_cast<int32_t>(right)).rank !=
             Merges::kNone) {
    return true;
  }
  // Unknown characters side by side may be one token.
  return !has_all_bytes_ && (symbol_of(left) < 0 || symbol_of(right) < 0);
}

int32_t CharacterWords::symbol_of(char32_t code) const {
  if (code < 128) return ascii_[code];
  const auto found = others_.find(code);
  return found == others_.end() ? -1 : found->second;
}

const char* CharacterWords::end_of_word(const char* at, const char* end) const {
  if (!options_.cuts) return end;
  utf8::Character left = utf8::decode(at, end);
  for (at += left.size; at < end;) {
    const utf8::Character right = utf8::decode(at, end);
    if (!is_joined(left.code, right.code)) return at;
    left = right;
    at += right.size;
  }
  return at;
}

void CharacterWords::append_symbols(std::string_view word, std::vector<int32_t>& symbols) const {
  const char* const end = word.data() + word.size();
  bool is_unknown = false;  // one waits, for what follows may belong to it
  const auto flush = [&] {
    if (is_unknown) symbols.push_back(options_.unknown_id);
    is_unknown = false;
  };
  for (const char* at = word.data(); at < end;) {
    const utf8::Character character = utf8::decode(at, end);
    const char* const next = at + character.size;
    if (const int32_t symbol = symbol_of(character.code); symbol >= 0) {
      flush();
      symbols.push_back(symbol);
      at = next;
      continue;
    }
    bool has_bytes = options_.byte_fallback;
    for (const char* byte = at; byte < next; ++byte) {
      has_bytes = has_bytes && byte_ids_[static_cast<uint8_t>(*byte)] >= 0;
    }
    for (; has_bytes && at < next; ++at) symbols.push_back(byte_ids_[static_cast<uint8_t>(*at)]);
    if (!has_bytes && options_.unknown_id >= 0) {
      if (!options_.fuse_unknown) flush();
      is_unknown = true;
    }
    at = next;
  }
  flush();
}

}  // namespace skein::bpe
