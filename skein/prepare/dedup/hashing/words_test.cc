#include "skein/prepare/dedup/hashing/words.h"

#include <gtest/gtest.h>

#include <vector>

#include "skein/base/files/file.h"
#include "skein/base/text/json.h"
#include "tests/places.h"

namespace skein {
namespace {

using Words = std::vector<std::string>;

Words words_of(std::string_view text) {
  Words words;
  WordHasher().for_each_word(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

// testdata/words.json: scripts/goldens/simplify_text.py.
TEST(DedupWords, AreThoseOfDatatrove) {
  const Json goldens =
      Json::parse(read_file(fs::path(kSourceFolder) / "skein/prepare/dedup/testdata/words.json"));
  ASSERT_GT(goldens.size(), 20u);
  for (const Json& golden : goldens) {
    EXPECT_EQ(words_of(golden["text"].get<std::string>()), golden["words"].get<Words>())
        << golden["text"];
  }
}

TEST(DedupWords, OfScriptsWithoutSpacesAreCharacters) {
  EXPECT_EQ(words_of("漢字とカタカナ、ABC"),
            (Words{"漢", "字", "と", "カ", "タ", "カ", "ナ", "abc"}));
  EXPECT_EQ(words_of("ガ"), words_of("カ"));  // as all marks, of either form
  EXPECT_EQ(words_of("カ\u3099"), words_of("カ"));
  EXPECT_EQ(words_of("ไทย"), (Words{"ไ", "ท", "ย"}));
}

TEST(DedupWords, SymbolsSeparateAndInvisibleCharactersDoNot) {
  EXPECT_EQ(words_of("a+b=c 😀 x€y"), (Words{"a", "b", "c", "x", "y"}));
  EXPECT_EQ(words_of("so\u00adft zero\u200bwidth"), (Words{"soft", "zerowidth"}));
  EXPECT_EQ(words_of(std::string("a\0b", 3)), (Words{"a", "b"}));
  EXPECT_EQ(words_of("a\xff\xfe"
                     "b\xc3"),
            (Words{"a", "b"}));
}

TEST(DedupWords, HashesAreOfTheirUtf8) {
  std::vector<uint64_t> hashes;
  WordHasher().for_each("Ö 12", [&](uint64_t hash) { hashes.push_back(hash); });
  EXPECT_EQ(hashes, (std::vector<uint64_t>{hash_name("o"), hash_name("0")}));
}

}  // namespace
}  // namespace skein
