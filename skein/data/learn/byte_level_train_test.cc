#include <gmock/gmock.h>

#include "skein/base/text/json.h"
#include "skein/bpe/train_merges.h"
#include "skein/data/corpus/corpus_writer.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "tests/error_of.h"
#include "tests/places.h"

namespace skein {
namespace {

using testing::HasSubstr;
using Pattern = bpe::SplitPattern::Kind;

class ByteLevelTraining : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        fmt::format("byte-level-{}-{}",
                    testing::UnitTest::GetInstance()->current_test_info()->name(), ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Corpus corpus(const std::vector<std::string>& documents) const {
    CorpusWriter writer(folder_ / "corpus.arrow");
    for (const std::string& document : documents) writer.append(document);
    writer.commit();
    return Corpus(folder_ / "corpus.arrow");
  }
  static TrainTokenizerOptions options() {
    TrainTokenizerOptions options;
    options.kind = TokenizerKind::kByteLevel;
    options.overwrite = true;
    return options;
  }
  Json trained(const Corpus& corpus, int vocab_size, const TrainTokenizerOptions& options) const {
    train_tokenizer(corpus, vocab_size, folder_ / "out", options);
    return Json::parse(read_file(folder_ / "out" / "tokenizer.json"));
  }

  fs::path folder_;
};

// testdata/byte_level/learnt.json: scripts/goldens/train_merges.py.
TEST_F(ByteLevelTraining, LearnsWhatTokenizersLearns) {
  const Json golden = Json::parse(
      read_file(fs::path(kSourceFolder) / "skein/data/tokenizer/testdata/byte_level/learnt.json"));
  const Corpus text = corpus(golden["documents"].get<std::vector<std::string>>());
  for (const auto& [name, pattern] :
       {std::pair("gpt2", Pattern::kGpt2), std::pair("llama3", Pattern::kLlama3),
        std::pair("qwen2", Pattern::kQwen2)}) {
    TrainTokenizerOptions wanted = options();
    wanted.pattern = pattern;
    wanted.special = {"<|endoftext|>", "<|pad|>"};
    for (const int num_threads : {1, 3}) {
      wanted.num_threads = num_threads;
      const Json json = trained(text, 420, wanted);
      EXPECT_EQ(json["model"]["merges"], golden["learnt"][name]["merges"]) << name;
      EXPECT_EQ(json["model"]["vocab"], golden["learnt"][name]["vocab"]) << name;
    }
  }
}

TEST_F(ByteLevelTraining, GivesATokenizerThatEncodesAndDecodes) {
  const std::string text = "the cat and the hat and the bat\n";
  train_tokenizer(corpus({text, text, text}), 270, folder_ / "out", options());
  const std::unique_ptr<Tokenizer> tokenizer = Tokenizer::load(folder_ / "out");
  EXPECT_EQ(tokenizer->vocab_size(), 270);
  EXPECT_EQ(tokenizer->eos_id(), 0);
  std::vector<int32_t> ids;
  tokenizer->encode(text, ids);
  EXPECT_LT(ids.size(), text.size() / 2);
  EXPECT_EQ(tokenizer->decode(ids), text);
}

// Corpora of others may hold any bytes.
TEST_F(ByteLevelTraining, CountsWhatIsNotUtf8AsItIsEncoded) {
  TrainTokenizerOptions qwen2 = options();
  qwen2.pattern = Pattern::kQwen2;
  const Json found =
      trained(corpus({"caf\xe9 \xcc", "\xff\xff\xff\xff\xfe", "caf\xe9"}), 262, qwen2);
  const std::string r = "\uFFFD";
  const Json wanted =
      trained(corpus({"caf" + r + " " + r, r + r + r + r + r, "caf" + r}), 262, qwen2);
  EXPECT_EQ(found, wanted);
}

TEST_F(ByteLevelTraining, SaysWhatIsImpossible) {
  const Corpus text = corpus({"abcabc", "abcabc"});
  const auto error_of = [&](int vocab_size, const TrainTokenizerOptions& options) {
    return test::error_of([&] { trained(text, vocab_size, options); });
  };
  EXPECT_THAT(error_of(1000, options()), HasSubstr("gives 260 tokens at most"));
  EXPECT_THAT(error_of(257, options()), HasSubstr("expected more than 257"));
  TrainTokenizerOptions other = options();
  other.special = {"ab"};
  EXPECT_THAT(error_of(259, other), HasSubstr("a token of text as well"));
  other.special = {"a"};
  EXPECT_THAT(error_of(259, other), HasSubstr("is the token of a byte"));
  other.special = {"<x>", "<x>"};
  EXPECT_THAT(error_of(300, other), HasSubstr("named twice"));
  EXPECT_FALSE(fs::exists(folder_ / "out" / "tokenizer.json"));
}

TEST(LearnMerges, OfEquallyFrequentPairsTakesTheLowestIds) {
  const bpe::LearntMerges learnt =
      bpe::learn_merges({{"ba", 2}, {"ab", 2}, {"cc", 3}}, {.num_tokens = 259});
  ASSERT_EQ(learnt.tokens.size(), 259u);
  EXPECT_EQ(learnt.tokens[256], "cc");
  EXPECT_EQ(learnt.tokens[257], "ab");
  EXPECT_EQ(learnt.tokens[258], "ba");
}

}  // namespace
}  // namespace skein
