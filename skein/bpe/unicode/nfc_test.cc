#include "skein/bpe/unicode/nfc.h"

#include <gtest/gtest.h>

namespace skein::bpe {
namespace {

std::string nfc(std::string_view text, NfcOf version) {
  std::string composed;
  return std::string(to_nfc(text, composed, version));
}

TEST(Nfc, ComposesAndOrders) {
  for (const NfcOf version : {NfcOf::kLatest, NfcOf::kUnicode9}) {
    EXPECT_EQ(nfc("plain", version), "plain");
    EXPECT_EQ(nfc("e\u0301", version), "\u00e9");
    EXPECT_EQ(nfc("a\u0301\u0323", version), "\u1ea1\u0301");
    EXPECT_EQ(nfc("\u1100\u1161\u11a8", version), "\uac01");
    EXPECT_EQ(nfc("\uac00\u11a7", version), "\uac00\u11a7");
  }
}

// Within a second; sorted by exchanging neighbours it takes minutes.
TEST(Nfc, OfManyMarks) {
  std::string text = "a", expected = "\u1ea1";
  for (int i = 0; i < 200000; ++i) text += "\u0301\u0323";
  for (int i = 1; i < 200000; ++i) expected += "\u0323";
  for (int i = 0; i < 200000; ++i) expected += "\u0301";
  EXPECT_EQ(nfc(text + "x", NfcOf::kLatest), expected + "x");
}

// As `tokenizers` 0.23.3 has it.
TEST(Nfc, OfUnicode9LeavesWhatCameLater) {
  EXPECT_EQ(nfc("\U00011935\U00011930", NfcOf::kLatest), "\U00011938");
  EXPECT_EQ(nfc("\U00011935\U00011930", NfcOf::kUnicode9), "\U00011935\U00011930");
  EXPECT_EQ(nfc("\u0898\u08cf", NfcOf::kLatest), "\u08cf\u0898");
  EXPECT_EQ(nfc("\u0898\u08cf", NfcOf::kUnicode9), "\u0898\u08cf");
  EXPECT_EQ(nfc("e\u0898\u0301e\u0301", NfcOf::kUnicode9), "e\u0898\u0301\u00e9");
}

}  // namespace
}  // namespace skein::bpe
