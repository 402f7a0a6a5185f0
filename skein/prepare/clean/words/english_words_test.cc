#include "skein/prepare/clean/words/english_words.h"

#include <gtest/gtest.h>

#include "skein/base/files/file.h"
#include "skein/base/text/json.h"
#include "skein/prepare/clean/filters/document_words.h"
#include "skein/prepare/clean/words/english_exceptions.h"
#include "skein/prepare/clean/words/web_address.h"
#include "tests/places.h"

namespace skein {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<Word> words;
  EnglishWords().split(text, 0, text.size(), words);
  std::vector<std::string> texts;
  for (const Word& word : words) {
    if (!word.is_space) texts.emplace_back(text.substr(word.begin, word.size()));
  }
  return texts;
}

// testdata/words.json: scripts/goldens/clean.py.
TEST(EnglishWords, AndSentencesAreThoseOfSpacy) {
  const Json goldens =
      Json::parse(read_file(fs::path(kSourceFolder) / "skein/prepare/clean/testdata/words.json"));
  ASSERT_GT(goldens.size(), 100u);
  for (const Json& golden : goldens) {
    const auto text = golden["text"].get<std::string>();
    EXPECT_EQ(words_of(text), golden["words"].get<std::vector<std::string>>()) << text;
    std::vector<Word> words;
    EnglishWords().split(text, 0, text.size(), words);
    EXPECT_EQ(count_sentences(text, words, 0, words.size(), CharacterReader()),
              golden["sentences"].get<int64_t>())
        << text;
  }
}

TEST(EnglishWords, ExceptionsAreTheirPartsPutTogether) {
  EXPECT_EQ(english_exceptions().size(), 1343u);
  for (const auto& [exception, sizes] : english_exceptions()) {
    size_t total = 0;
    for (const size_t size : sizes) total += size;
    EXPECT_EQ(total, exception.size()) << exception;
  }
}

TEST(EnglishWords, OfPartsOfATextKeepTheirPlaces) {
  const std::string_view text = "one (two) three";
  std::vector<Word> words;
  const EnglishWords::LineRuns line = EnglishWords().split(text, 4, 9, words);
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words[1], (Word{5, 8}));
  EXPECT_EQ(line.num_runs, 1);
  EXPECT_EQ(line.longest_run, 5);
}

TEST(WebAddress, IsToldFromOtherWordsWithDots) {
  const CharacterReader reader;
  for (const char* address :
       {"example.com", "http://www.example.co.uk:80/a?b#c", "user:pass@host.org/",
        "a_b.example.org", "8.8.8.8/path", "bücher.de", "x.y.zz?q", "svn+ssh://host.net"}) {
    EXPECT_TRUE(is_web_address(address, reader)) << address;
  }
  for (const char* other :
       {"example.C", "a.b", "10.0.0.1/x", "192.168.0.1", "1.2.3.256", "-a.com", "a-.com", "a..com",
        "host.com:1", "host.com:123456", "http://", ".com"}) {
    EXPECT_FALSE(is_web_address(other, reader)) << other;
  }
  EXPECT_TRUE(is_web_address(std::string(64, 'a') + ".com", reader));
  EXPECT_FALSE(is_web_address(std::string(65, 'a') + ".com", reader));
}

}  // namespace
}  // namespace skein
