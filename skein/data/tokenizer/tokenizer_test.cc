#include "skein/data/tokenizer/tokenizer.h"

#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <random>

#include "skein/base/error.h"
#include "skein/base/text/json.h"
#include "skein/data/corpus/corpus_writer.h"
#include "skein/data/learn/tokenizer_train.h"
#include "skein/data/tokenizer/sentencepiece/sentencepiece_model.h"
#include "tests/error_of.h"
#include "tests/places.h"

namespace skein {
namespace {

using test::error_of;

const fs::path kGoldens = fs::path(kSourceFolder) / "skein/data/tokenizer/testdata/models";

fs::path new_folder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / fmt::format("{}-{}", name, ::getpid());
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

class TokenizerGolden : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerGolden, IdsAreThoseOfSentencePiece) {
  const auto tokenizer = Tokenizer::load(kGoldens / GetParam());
  const Json goldens = read_json((kGoldens / "ids.json").string());
  ASSERT_GT(goldens[GetParam()].size(), 80u);
  for (const Json& golden : goldens[GetParam()]) {
    const auto text = golden["text"].get<std::string>();
    const auto ids = golden["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(encode(*tokenizer, text), ids) << text.substr(0, 200);
    EXPECT_EQ(tokenizer->decode(ids), golden["decoded"].get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TokenizerGolden,
                         testing::Values("llama", "rules", "unigram", "bare", "trim", "symbols"));

class SentencePieceItself : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(library_.Load((kGoldens / GetParam() / "tokenizer.model").string()).ok());
  }
  sentencepiece::SentencePieceProcessor library_;
  std::mt19937 random_{17};
};

TEST_P(SentencePieceItself, EncodesAlike) {
  const auto tokenizer = Tokenizer::load(kGoldens / GetParam());
  const std::string license = read_file(fs::path(kSourceFolder) / "LICENSE");
  const std::vector<std::string> words = {
      " ",    "  ",      "\n",           "\t",     "or",     " the",
      "ti",   "▁",       "▁▁",           "漢",     "é",      "7",
      "<s>",  "\xff",    "\xe6",         "tion",   "    ",   std::string(1, '\0'),
      "🙂", "e\u0301", "<|im_start|>", "<0x41>", "\u200d", "\xed\xa0\x80"};
  for (int round = 0; round < 60; ++round) {
    std::string text;
    const size_t size = round % 2 == 0 ? 20'000 : random_() % 40;
    while (text.size() < size) {
      if (random_() % 50 == 0) text += license.substr(random_() % license.size(), random_() % 3000);
      text += words[random_() % words.size()];
    }
    std::vector<int> wanted;
    ASSERT_TRUE(library_.Encode(text, &wanted).ok());
    ASSERT_EQ(encode(*tokenizer, text), wanted) << "round " << round;
  }
}

TEST_P(SentencePieceItself, DecodesAlike) {
  const auto tokenizer = Tokenizer::load(kGoldens / GetParam());
  for (int round = 0; round < 400; ++round) {
    std::vector<int32_t> ids(random_() % 12);
    // Half of them from the beginning, where control, unknown and byte pieces are.
    for (int32_t& id : ids) {
      const int few = random_() % 2 == 0 ? 262 : tokenizer->vocab_size();
      id = static_cast<int32_t>(random_() % static_cast<unsigned>(few));
    }
    std::string wanted;
    ASSERT_TRUE(library_.Decode(std::vector<int>(ids.begin(), ids.end()), &wanted).ok());
    ASSERT_EQ(tokenizer->decode(ids), wanted) << fmt::format("{}", fmt::join(ids, " "));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SentencePieceItself,
                         testing::Values("llama", "bare", "trim", "symbols"));

TEST(Tokenizer, LongTextsTakeTimeInProportion) {
  const auto tokenizer = Tokenizer::load(kGoldens / "llama");
  const std::string license = read_file(fs::path(kSourceFolder) / "LICENSE");
  std::string text;
  while (text.size() < (2u << 20)) text += license;
  std::vector<int32_t> ids;
  const auto begin = std::chrono::steady_clock::now();
  tokenizer->encode(text, ids);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(tokenizer->decode(ids), text);
  EXPECT_LT(elapsed.count(), 100);  // in proportion to its square it would be hours
}

TEST(Tokenizer, KnowsItsControlTokensAndFiles) {
  const auto tokenizer = Tokenizer::load(kGoldens / "llama");
  EXPECT_EQ(tokenizer->vocab_size(), 512);
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_EQ(tokenizer->files(), std::vector<fs::path>{kGoldens / "llama/tokenizer.model"});
}

TEST(Tokenizer, AppendsAndSkipsControlTokensInDecode) {
  const auto tokenizer = Tokenizer::load(kGoldens / "llama" / "tokenizer.model");
  std::vector<int32_t> ids{1};
  tokenizer->encode("license", ids);
  EXPECT_EQ(ids.front(), 1);
  ids.push_back(2);
  EXPECT_EQ(tokenizer->decode(ids), "license");
}

TEST(Tokenizer, RefusesIdsOutOfRange) {
  const auto tokenizer = Tokenizer::load(kGoldens / "llama");
  for (const int32_t id : {-1, 512, std::numeric_limits<int32_t>::max()}) {
    EXPECT_THROW(tokenizer->decode(std::vector<int32_t>{5, id}), Error) << id;
  }
}

TEST(Tokenizer, SaysWhatAFolderLacks) {
  const fs::path folder = new_folder("tokenizer-lacks");
  EXPECT_NE(
      error_of([&] { Tokenizer::load(folder); }).find("neither tokenizer.model nor tokenizer.json"),
      std::string::npos);
  write_file_atomic(folder / "tokenizer.json", "{}");
  EXPECT_NE(error_of([&] { Tokenizer::load(folder); }).find("'model' is missing"),
            std::string::npos);
  EXPECT_NE(error_of([&] { Tokenizer::load(folder / "none"); }).find("no such file or folder"),
            std::string::npos);
}

TEST(Tokenizer, NoDamagedModelGetsThrough) {
  for (const char* name : {"llama", "rules", "unigram"}) {
    const std::string model = read_file(kGoldens / name / "tokenizer.model");
    // A cut between two fields may leave a smaller but complete model; all others must be refused.
    for (size_t size = 0; size < model.size(); size += 7) {
      const auto error = error_of([&] { Tokenizer::from_model(model.substr(0, size), "cut"); });
      EXPECT_TRUE(error.empty() || error.starts_with("cut: ")) << error;
    }
    std::mt19937 random(3);
    int num_refused = 0;
    for (int i = 0; i < 300; ++i) {
      std::string damaged = model;
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
      const auto error = error_of([&] {
        const auto tokenizer = Tokenizer::from_model(damaged, "flipped");
        encode(*tokenizer, "some text, ＦＵＬＬ 漢字 12");
      });
      num_refused += !error.empty();
    }
    EXPECT_GT(num_refused, 20) << name;
  }
}

std::string field(int number, std::string_view bytes) {
  std::string text{static_cast<char>(number << 3 | 2)};
  for (size_t size = bytes.size(); true; size >>= 7) {
    text.push_back(static_cast<char>((size & 0x7f) | (size > 0x7f ? 0x80 : 0)));
    if (size <= 0x7f) break;
  }
  return text.append(bytes);
}

std::string piece(std::string_view text, float score, char type) {
  std::string number(4, '\0');
  std::memcpy(number.data(), &score, 4);
  return field(1, field(1, text) + "\x15" + number + "\x18" + type);
}

TEST(TokenizerModel, RefusesWhatLibsentencepieceWouldTrip) {
  const std::string unknown = piece("<unk>", 0, 2), bpe = field(2, "\x18\x02");
  const auto refused = [&](const std::string& model) {
    return error_of([&] { parse_sentencepiece_model(model, "m"); });
  };
  EXPECT_EQ(refused(unknown + piece("a", -1, 1) + bpe), "");
  EXPECT_NE(refused("").find("no pieces"), std::string::npos);
  EXPECT_NE(refused(unknown + piece(std::string(5000, 'a'), 0, 1)).find("5000 bytes"),
            std::string::npos);
  EXPECT_NE(refused(unknown + piece("", 0, 1)).find("0 bytes"), std::string::npos);
  EXPECT_NE(refused(unknown + piece("a", NAN, 1)).find("finite"), std::string::npos);
  EXPECT_NE(refused(unknown + piece("\xff", 0, 1)).find("UTF-8"), std::string::npos);
  EXPECT_NE(refused(unknown + piece("a", 0, 1) + piece("a", 0, 1)).find("twice"),
            std::string::npos);
  EXPECT_NE(refused(unknown + piece("a", 0, 9)).find("type 9"), std::string::npos);
  EXPECT_NE(refused(unknown + piece("a", 0, 6)).find("of type byte"), std::string::npos);
  EXPECT_NE(refused(unknown + unknown).find("twice"), std::string::npos);
  EXPECT_NE(refused(piece("a", 0, 1)).find("0 pieces of type unknown"), std::string::npos);
  EXPECT_NE(refused(unknown + field(2, "\x18\x07")).find("model type 7"), std::string::npos);
  EXPECT_NE(refused(unknown + "\x0a\xff\xff\xff\xff\x7f").find("truncated"), std::string::npos);
}

// A trie of 256 units whose root leads to `bits` at unit 'a'.
std::string charsmap_with(uint32_t root_bits, uint32_t bits) {
  std::vector<uint32_t> units(512, 0x80000000u);  // no byte's label
  units[0] = root_bits;
  units[256 ^ 'a'] = bits;
  const uint32_t size = static_cast<uint32_t>(units.size() * 4);
  std::string map(4 + size, '\0');
  std::memcpy(map.data(), &size, 4);
  std::memcpy(map.data() + 4, units.data(), size);
  return map + std::string("b\0", 2);
}

TEST(TokenizerModel, NormalizerTrieStaysInBounds) {
  const auto error = [](const std::string& map) {
    return error_of([&] { check_charsmap(map, "m"); });
  };
  const uint32_t root = 256u << 10;  // offset 256
  EXPECT_EQ(error(charsmap_with(root, 'b')), "");
  EXPECT_NE(error(charsmap_with(0x1fffffu << 10, 0)).find("out of the trie"), std::string::npos);
  EXPECT_NE(error(charsmap_with(root, 0x1fffffu << 10 | 'a')).find("out of the trie"),
            std::string::npos);
  // 'a' leads back into its own block: "aaaa..." would match forever.
  EXPECT_NE(error(charsmap_with(root, static_cast<uint32_t>('a') << 10 | 'a')).find("without end"),
            std::string::npos);
  EXPECT_NE(error("").find("trie has 0"), std::string::npos);
  EXPECT_NE(error(std::string("\xff\xff\xff\xff____", 8)).find("trie has"), std::string::npos);
}

Corpus small_corpus(const fs::path& folder) {
  CorpusWriter writer(folder / "corpus.arrow");
  std::mt19937 random(11);
  for (int i = 0; i < 400; ++i) {
    std::string text;
    for (int line = 0; line < 12; ++line) {
      std::string name;
      for (int letter = 0; letter < 6; ++letter) name += static_cast<char>('a' + random() % 26);
      text += fmt::format("\tconst int {} = compute({}, \"naïve {}\");\n", name, random() % 1000,
                          random() % 7);
    }
    writer.append(text);
  }
  writer.commit();
  return Corpus(folder / "corpus.arrow");
}

TEST(TrainTokenizer, RepresentsAnyText) {
  const fs::path folder = new_folder("tokenizer-train");
  train_tokenizer(small_corpus(folder), 400, folder / "tok");
  const auto tokenizer = Tokenizer::load(folder / "tok");
  EXPECT_EQ(tokenizer->vocab_size(), 400);
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_EQ(tokenizer->files().size(), 4u);
  for (const std::string text :
       {"int x;\n\n\treturn  7;\r\n", "  two  spaces  ", "漢字 🙂 é", "<s>", "12345", "\n"}) {
    EXPECT_EQ(tokenizer->decode(encode(*tokenizer, text)), text);
  }
  EXPECT_LT(encode(*tokenizer, "\tconst int x = compute(").size(), 16u);
  EXPECT_EQ(encode(*tokenizer, "777").size(), 4u);  // single digits, after the first space
}

TEST(TrainTokenizer, SameFilesEveryTime) {
  const fs::path folder = new_folder("tokenizer-threads");
  const Corpus corpus = small_corpus(folder);
  train_tokenizer(corpus, 350, folder / "one", {.sample_bytes = 100'000});
  train_tokenizer(corpus, 350, folder / "two", {.sample_bytes = 100'000});
  for (const fs::path& file : Tokenizer::load(folder / "one")->files()) {
    EXPECT_EQ(read_file(file), read_file(folder / "two" / file.filename())) << file;
  }
}

TEST(TrainTokenizer, ReplacesNoTokenizerUnasked) {
  const fs::path folder = new_folder("tokenizer-replaced");
  const Corpus corpus = small_corpus(folder);
  fs::create_directories(folder / "tok");
  write_file_atomic(folder / "tok/tokenizer.json", "precious");
  const auto refused = [&](auto&& body, const char* part) {
    try {
      body();
      ADD_FAILURE() << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  refused([&] { train_tokenizer(corpus, 350, folder / "tok"); }, "--overwrite");
  refused([&] { convert_tokenizer(kGoldens / "llama", folder / "tok"); }, "--overwrite");
  refused([&] { train_tokenizer(corpus, 350, folder / "tok/tokenizer.json"); }, "is a file");
  EXPECT_EQ(read_file(folder / "tok/tokenizer.json"), "precious");
  // Files of the replaced tokenizer are removed with it; files that are not a tokenizer's stay.
  write_file_atomic(folder / "tok/chat_template.jinja", "of another tokenizer");
  write_file_atomic(folder / "tok/notes.txt", "mine");
  train_tokenizer(corpus, 350, folder / "tok", {.overwrite = true});
  EXPECT_FALSE(fs::exists(folder / "tok/chat_template.jinja"));
  EXPECT_TRUE(fs::exists(folder / "tok/notes.txt"));
  EXPECT_EQ(Tokenizer::load(folder / "tok")->vocab_size(), 350);
}

TEST(TrainTokenizer, SaysWhenTheVocabularyDoesNotFit) {
  const fs::path folder = new_folder("tokenizer-refused");
  const Corpus corpus = small_corpus(folder);
  EXPECT_NE(error_of([&] { train_tokenizer(corpus, 200, folder / "t"); }).find("--vocab-size 200"),
            std::string::npos);
  const std::string error = error_of([&] { train_tokenizer(corpus, 90'000, folder / "t"); });
  EXPECT_NE(error.find("90000"), std::string::npos) << error;
  EXPECT_FALSE(fs::exists(folder / "t/tokenizer.model"));
}

TEST(SampleCorpus, TakesAboutTheShareAskedForInWholeCharacters) {
  const fs::path folder = new_folder("sample");
  CorpusWriter writer(folder / "corpus.arrow");
  for (int i = 0; i < 50; ++i) {
    std::string text;
    for (int j = 0; j < 5000; ++j) text += j % 97 == 0 ? "é\n" : "漢";
    writer.append(text);
  }
  writer.commit();
  const Corpus corpus(folder / "corpus.arrow");
  for (const int64_t excerpt_bytes : {10, 100, 1000}) {
    int64_t num_bytes = 0;
    sample_corpus(corpus, corpus.num_bytes() / 4, excerpt_bytes, 1, [&](const HeldText& text) {
      num_bytes += static_cast<int64_t>(text.size());
      EXPECT_NE(static_cast<uint8_t>(text.view()[0]) & 0xc0, 0x80);
      EXPECT_LE(static_cast<int64_t>(text.size()), excerpt_bytes);
    });
    EXPECT_NEAR(static_cast<double>(num_bytes), static_cast<double>(corpus.num_bytes()) / 4,
                static_cast<double>(corpus.num_bytes()) / 12);
  }
  std::string all;
  sample_corpus(corpus, corpus.num_bytes(), 64, 1,
                [&](const HeldText& text) { all += text.view(); });
  EXPECT_EQ(static_cast<int64_t>(all.size()), corpus.num_bytes());
}

}  // namespace
}  // namespace skein
