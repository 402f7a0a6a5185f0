#include "skein/bpe/unicode/invalid_utf8.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(ReplacedUtf8, TheValidPrefixEndsBeforeACharacterThatIsCutShort) {
  for (char32_t code = 0x80; code <= 0x10ffff; code = code * 9 / 8) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    std::string text(40, 'a');  // more than are skipped at a time
    utf8::append(text, code);
    ASSERT_EQ(utf8::valid_prefix(text), text.size());
    text.pop_back();
    ASSERT_EQ(utf8::valid_prefix(text), 40u);
  }
}

TEST(ReplacedUtf8, BytesThatAreNoneAreReplacedOneByOne) {
  const std::string r(utf8::kReplacement);
  EXPECT_EQ(utf8::replace_invalid("all is well, \u00e9"), "all is well, \u00e9");
  EXPECT_EQ(utf8::replace_invalid("eight by\xff"), "eight by" + r);
  EXPECT_EQ(utf8::replace_invalid("\xc0\x80"), r + r);                  // a longer form
  EXPECT_EQ(utf8::replace_invalid("\xed\xa0\x80"), r + r + r);          // a surrogate
  EXPECT_EQ(utf8::replace_invalid("\xf4\x90\x80\x80"), r + r + r + r);  // beyond U+10FFFF
  EXPECT_EQ(utf8::replace_invalid("\xe2\x82x"), r + r + "x");           // cut short
}

}  // namespace
}  // namespace skein
