// GPT-2's alphabet: a visible character for each byte, by which a tokenizer.json spells bytes.
//
// Source  bytes_to_unicode() of https://github.com/openai/gpt-2
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace skein::bpe {

// [byte]: a visible Latin-1 character is itself, the other bytes are U+0100 and on.
const std::array<char32_t, 256>& byte_alphabet();

// The bytes that `spelled` stands for, appended; false where a character stands for none.
bool from_byte_level(std::string_view spelled, std::string& bytes);

std::string to_byte_level(std::string_view bytes);

}  // namespace skein::bpe
