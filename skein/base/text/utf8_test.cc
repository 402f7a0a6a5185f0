#include "skein/base/text/utf8.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(Utf8, EveryCharacterIsDecodedAsItWasAppended) {
  for (char32_t code = 0; code <= 0x10ffff; ++code) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    std::string text;
    utf8::append(text, code);
    const utf8::Character character = utf8::first_character(text);
    ASSERT_EQ(character.code, code);
    ASSERT_EQ(static_cast<size_t>(character.size), text.size());
    ASSERT_TRUE(utf8::is_one_character(text));
    text.insert(0, "é");
    ASSERT_EQ(utf8::last_character(text).code, code);
    text.pop_back();  // cut short
    if (text.size() > 2) {
      ASSERT_EQ(utf8::first_character(text.substr(2)).code, utf8::kInvalid);
    }
  }
}

TEST(Utf8, BytesThatAreNoCharacterAreInvalid) {
  for (const std::string_view text :
       {"\x80", "\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82x", "\xc3"}) {
    EXPECT_EQ(utf8::first_character(text).code, utf8::kInvalid);
    EXPECT_EQ(utf8::first_character(text).size, 1);
  }
}

TEST(Utf8, TextsAreCutBetweenCharacters) {
  const std::string_view text = "a漢é";  // bytes 0, 1 to 3, 4 and 5
  constexpr size_t kStarts[] = {0, 1, 1, 1, 4, 4, 6}, kNextStarts[] = {0, 1, 4, 4, 4, 6, 6};
  for (size_t position = 0; position <= text.size(); ++position) {
    EXPECT_EQ(utf8::character_start(text, position), kStarts[position]);
    EXPECT_EQ(utf8::next_character_start(text, position), kNextStarts[position]);
  }
  EXPECT_EQ(utf8::num_characters(text), 3u);
}

}  // namespace
}  // namespace skein
