#include "skein/base/text/visible_text.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(VisibleText, LeavesWhatCanBeSeen) {
  EXPECT_EQ(visible_text("naïve 漢字 😀 \"\\", 99), "naïve 漢字 😀 \"\\");
  EXPECT_EQ(visible_text("", 5), "");
  EXPECT_EQ(visible_text("abc", 3), "abc");
  EXPECT_EQ(visible_text("abcd", 3), "abc…");
  EXPECT_EQ(visible_text("漢字x", 2), "漢字…");
}

TEST(VisibleText, ShowsWhatCannot) {
  EXPECT_EQ(visible_text("a\nb\tc\r", 99), "a\\nb\\tc\\r");
  EXPECT_EQ(visible_text(std::string_view("\0\x1b[2J\x7f", 6), 99), "\\x00\\x1b[2J\\x7f");
  EXPECT_EQ(visible_text("\u009b\u202e\u200b\ufeff", 99), "\\u009b\\u202e\\u200b\\ufeff");
}

TEST(VisibleText, LinesStayWhereTheyAreAskedFor) {
  EXPECT_EQ(visible_line("a\nb\x9b"), "a\\nb\\x9b");
  EXPECT_EQ(visible_lines("a\nb\x1b[2J\n"), "a\nb\\x1b[2J\n");
  EXPECT_EQ(visible_lines(""), "");
}

TEST(VisibleText, RunningTextKeepsWhatItIsMadeOf) {
  EXPECT_EQ(terminal_text("a\n\tمی\u200cخواهم 👩\u200d🔬"), "a\n\tمی\u200cخواهم 👩\u200d🔬");
  EXPECT_EQ(terminal_text("\x1b[2J\r\u009b\u202e\x7f\xff"), "\\x1b[2J\\r\\u009b\\u202e\\x7f\\xff");
}

TEST(VisibleText, KnowsUtf8) {
  EXPECT_TRUE(is_valid_utf8("naïve 漢字 😀"));
  EXPECT_TRUE(is_valid_utf8(""));
  for (const char* text : {"j\xf6rg", "\x80", "\xed\xa0\x80", "\xe6\xbc", "\xc0\xaf"}) {
    EXPECT_FALSE(is_valid_utf8(text)) << visible_line(text);
  }
}

// Bytes that are not UTF-8: a lone continuation, an encoding that is too long, a surrogate, a
// character that is cut off, and what lies beyond the last one.
TEST(VisibleText, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(visible_text("\x80z", 99), "\\x80z");
  EXPECT_EQ(visible_text("\xc0\xaf", 99), "\\xc0\\xaf");
  EXPECT_EQ(visible_text("\xed\xa0\x80", 99), "\\xed\\xa0\\x80");
  EXPECT_EQ(visible_text("\xe6\xbc", 99), "\\xe6\\xbc");
  EXPECT_EQ(visible_text("\xf4\x90\x80\x80", 99), "\\xf4\\x90\\x80\\x80");
}

}  // namespace
}  // namespace skein
