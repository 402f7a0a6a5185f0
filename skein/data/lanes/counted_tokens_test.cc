#include "skein/data/lanes/counted_tokens.h"

#include <gmock/gmock.h>

#include <random>

#include "skein/base/text/json.h"
#include "skein/data/lanes/lane_testing.h"
#include "skein/data/lanes/packer.h"
#include "skein/data/tokenizer/token_ends.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "tests/error_of.h"
#include "tests/places.h"

namespace skein {
namespace {

using testing::ElementsAre;

// Pairs of equal bytes are one token, 1000 + byte; a document begins with a blank, as with
// SentencePiece.
class PairTokenizer final : public Tokenizer {
 public:
  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    const std::string all = (adds_blank ? " " : "") + std::string(text);
    for (size_t i = 0; i < all.size(); ++i) {
      const bool pair = i + 1 < all.size() && all[i] == all[i + 1];
      out.push_back((pair ? 1000 : 0) + static_cast<unsigned char>(all[i]));
      i += pair ? 1 : 0;
    }
  }
  // "<s>" is the special token 1999.
  void parse(std::string_view text, std::vector<int32_t>& out) const override {
    for (size_t at = text.find("<s>"); at != text.npos; at = text.find("<s>")) {
      encode(text.substr(0, at), out);
      out.push_back(1999);
      text.remove_prefix(at + 3);
    }
    encode(text, out);
  }
  std::string decode(std::span<const int32_t>) const override { return ""; }
  int vocab_size() const override { return 2000; }
  int bos_id() const override { return -1; }
  int eos_id() const override { return -1; }
  std::string content_hash() const override { return "pairs"; }
  std::vector<fs::path> files() const override { return {}; }

  bool adds_blank = false;
};

std::vector<uint8_t> counted(const Tokenizer& tokenizer, std::string_view text,
                             const std::vector<ByteRange>& spans,
                             SpecialTokens special = SpecialTokens::kText) {
  std::vector<int32_t> ids;
  tokenizer.encode_as(special, text, ids);
  return counted_tokens(tokenizer, special, text, ids, spans);
}

TEST(CountedTokens, ThoseOfWhichAByteLiesInASpan) {
  PairTokenizer pairs;
  EXPECT_THAT(counted(pairs, "abcdef", {{2, 4}}), ElementsAre(0, 0, 1, 1, 0, 0));
  EXPECT_THAT(counted(pairs, "abcdef", {{0, 1}, {3, 6}}), ElementsAre(1, 0, 0, 1, 1, 1));
  EXPECT_THAT(counted(pairs, "abcdef", {}), ElementsAre(0, 0, 0, 0, 0, 0));
  // a [bb] c [dd] e: borders inside of both pairs.
  EXPECT_THAT(counted(pairs, "abbcdde", {{2, 5}}), ElementsAre(0, 1, 1, 1, 0));
  EXPECT_THAT(counted(pairs, "abbcdde", {{1, 2}, {5, 6}}), ElementsAre(0, 1, 0, 1, 0));
  pairs.adds_blank = true;  // which the parts alone would have as well
  EXPECT_THAT(counted(pairs, "abcdef", {{2, 4}}), ElementsAre(0, 0, 0, 1, 1, 0, 0));
}

TEST(CountedTokens, OfSpecialTokensThatAreParsed) {
  const PairTokenizer pairs;
  const std::string_view text = "a<s>bc<s>d";  // a <s> b c <s> d
  EXPECT_THAT(counted(pairs, text, {{4, 9}}, SpecialTokens::kParse), ElementsAre(0, 0, 1, 1, 1, 0));
  EXPECT_THAT(counted(pairs, text, {{1, 4}, {9, 10}}, SpecialTokens::kParse),
              ElementsAre(0, 1, 0, 0, 0, 1));
  EXPECT_THAT(counted(pairs, text, {{4, 9}}), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 1, 0));
}

// Against the bytes of tokens, which a tokenizer of bytes gives.
TEST(CountedTokens, OfRandomSpans) {
  std::mt19937_64 random(5);
  const ByteTokenizer bytes;
  for (int round = 0; round < 200; ++round) {
    std::string text(random() % 60, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    std::vector<ByteRange> spans;
    std::vector<uint8_t> expected(text.size(), 0);
    for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
      const auto end = std::min<int64_t>(static_cast<int64_t>(text.size()),
                                         at + 1 + static_cast<int64_t>(random() % 9));
      if (random() % 2 == 0) {
        spans.push_back({at, end});
        std::fill(expected.begin() + at, expected.begin() + end, 1);
      }
      at = end;
    }
    EXPECT_EQ(counted(bytes, text, spans), expected);
  }
}

// As transformers has it, also where a tokenizer looks ahead of a border: of " \n" before a letter
// GPT-2's pattern makes two tokens, and at the end of a text one.
TEST(CountedTokens, OfEveryFormAreThoseOfTransformers) {
  const fs::path folder = fs::path(kSourceFolder) / "skein/data/tokenizer/testdata";
  const Json goldens = read_json((folder / "completion_masks.json").string());
  for (const auto& [form, cases] : goldens.items()) {
    const auto tokenizer = Tokenizer::load(folder / "forms" / form);
    for (const Json& one : cases) {
      const std::string text = one.at("text");
      std::vector<ByteRange> spans;
      for (size_t i = 0; i < one.at("spans").size(); i += 2) {
        spans.push_back({one["spans"][i], one["spans"][i + 1]});
      }
      std::vector<int32_t> ids;
      tokenizer->encode(text, ids);
      ASSERT_EQ(Json(ids), one.at("ids")) << form << ": " << text;
      EXPECT_EQ(Json(counted_tokens(*tokenizer, SpecialTokens::kText, text, ids, spans)),
                one.at("counts"))
          << form << ": " << one.dump();
      EXPECT_TRUE(token_ends(*tokenizer, SpecialTokens::kText, text, ids)) << form << ": " << text;
    }
  }
}

// Documents that count from a '[' on to the next ']'.
class MarkedDocuments final : public MemoryDocuments {
 public:
  using MemoryDocuments::MemoryDocuments;
  bool has_loss_spans() const override { return true; }
  std::vector<ByteRange> loss_spans(int64_t index) const override {
    const std::string_view text = document(index);
    std::vector<ByteRange> spans;
    for (size_t at = text.find('['); at != text.npos; at = text.find('[', at)) {
      const size_t end = std::min(text.find(']', at), text.size() - 1) + 1;
      spans.push_back({static_cast<int64_t>(at), static_cast<int64_t>(end)});
      at = end;
    }
    return spans;
  }
};

std::vector<Batch> batches_of(const DocumentSource& source, LaneOptions options, int64_t count) {
  const ByteTokenizer tokenizer;
  const LaneContext context(source, tokenizer, options);
  const Mixture mixture(context);
  Packer packer(mixture, 0, options.global_sequences);
  std::vector<Batch> batches;
  for (int64_t i = 0; i < count; ++i) {
    batches.emplace_back(0, options.global_sequences, options.sequence_length);
    packer.fill(batches.back());
  }
  return batches;
}

TEST(CompletionLabels, RowsAreTheSameAndOtherTokensHaveNoLabel) {
  std::vector<std::string> texts;
  std::mt19937_64 random(3);
  for (int i = 0; i < 120; ++i) {
    std::string text;
    for (int turn = static_cast<int>(random() % 4); turn >= 0; --turn) {
      text += "p" + std::string(random() % 20, 'q') + "[" + std::string(random() % 20, 's') + "]";
    }
    if (random() % 3 == 0) text += "ttt";
    texts.push_back(text);
  }
  texts.emplace_back("qqqq qqqq");
  texts.push_back("[" + std::string(3000, 's') + "]" +
                  std::string(3000, 'q'));  // cut into segments
  const MarkedDocuments source(texts);
  for (const bool mask : {true, false}) {
    LaneOptions options{
        .global_sequences = 3, .sequence_length = 37, .document_mask = mask, .prepend_bos = mask};
    const auto all = batches_of(source, options, 60);
    options.completion_only = true;
    const auto some = batches_of(source, options, 60);
    for (size_t b = 0; b < all.size(); ++b) {
      ASSERT_EQ(some[b].tokens, all[b].tokens);
      ASSERT_EQ(some[b].positions, all[b].positions);
      int64_t num_labels = 0;
      for (size_t i = 0; i < all[b].labels.size(); ++i) {
        const int32_t label = some[b].labels[i];
        num_labels += label >= 0 ? 1 : 0;
        const int32_t target = all[b].labels[i];
        // Letters say which they are of; EOS counts behind a ']'.
        const bool counts = target == '[' || target == 's' || target == ']' ||
                            (target == ByteTokenizer::kEos && all[b].tokens[i] == ']');
        ASSERT_EQ(label, counts ? target : kNoLabel) << b << " " << i;
      }
      ASSERT_EQ(some[b].num_label_tokens, num_labels);
    }
  }
}

TEST(CompletionLabels, ACorpusThatDoesNotSayIsRefused) {
  const MemoryDocuments source(std::vector<std::string>(100, "some text of no conversation"));
  EXPECT_THAT(test::error_of([&] {
                batches_of(source,
                           {.global_sequences = 1, .sequence_length = 8, .completion_only = true},
                           1);
              }),
              testing::AllOf(testing::HasSubstr("memory.arrow: the corpus does not say"),
                             testing::HasSubstr("--chat-template")));
}

}  // namespace
}  // namespace skein
