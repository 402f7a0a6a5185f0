#include "skein/data/lanes/lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "skein/base/error.h"
#include "skein/data/lanes/lane_testing.h"

namespace skein {
namespace {

const ByteTokenizer kTokenizer;

LaneOptions options(int64_t global_sequences, int64_t sequence_length) {
  return {.seed = 3, .global_sequences = global_sequences, .sequence_length = sequence_length};
}

template <typename Body>
std::string error_of(Body&& body, ErrorCode code) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// All tokens that lane `lane` reads in epoch `epoch`.
std::vector<int32_t> read_epoch(const LaneContext& context, int64_t lane, int64_t epoch) {
  Lane stream(context, lane);
  std::vector<int32_t> tokens;
  while (context.epoch(lane, stream.state()) <= epoch) {
    const auto pending = stream.pending();
    if (context.epoch(lane, stream.state()) == epoch) {  // pending() may skip empty segments
      tokens.insert(tokens.end(), pending.begin(), pending.end());
    }
    stream.consume(static_cast<int64_t>(pending.size()));
  }
  return tokens;
}

TEST(Lane, EveryEpochReadsEveryDocumentExactlyOnce) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    // Short documents and few lanes, so that no document is cut.
    std::vector<std::string> texts;
    for (int i = 0; i < 400; ++i) texts.push_back(i % 7 == 0 ? "" : fmt::format("document {}.", i));
    const MemoryDocuments documents(texts);
    const LaneContext context(documents, kTokenizer, options(1 + seed % 20, 16));
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<std::string> found;
      for (int64_t lane = 0; lane < context.options().global_sequences; ++lane) {
        for (const int32_t id : read_epoch(context, lane, epoch)) {
          if (id == ByteTokenizer::kBos) {
            found.emplace_back();
          } else if (id != ByteTokenizer::kEos) {
            found.back().push_back(static_cast<char>(id));
          }
        }
      }
      std::vector<std::string> expected;
      std::copy_if(texts.begin(), texts.end(), std::back_inserter(expected),
                   [](const std::string& text) { return !text.empty(); });
      std::sort(found.begin(), found.end());
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(found, expected) << "epoch " << epoch << " seed " << seed;
    }
  }
}

TEST(Lane, DocumentsThatAreCutAreReadWholeAndEndOnce) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto documents = random_documents(seed, 6, 400);
    int64_t num_bytes = 0, num_full = 0;
    for (const auto& text : documents.texts()) {
      num_bytes += static_cast<int64_t>(text.size());
      num_full += !text.empty();
    }
    const int64_t lanes = 12;
    if (num_bytes < lanes * 16) continue;
    const LaneContext context(documents, kTokenizer, options(lanes, 4));
    std::map<int32_t, int64_t> found, expected;  // of bytes, then of EOS
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const auto tokens = read_epoch(context, lane, 1);
      ASSERT_FALSE(tokens.empty());  // every lane has text
      for (const int32_t id : tokens) ++found[id];
    }
    for (const auto& text : documents.texts()) {
      for (const char c : text) ++expected[static_cast<unsigned char>(c)];
    }
    expected[ByteTokenizer::kEos] = num_full;
    EXPECT_GE(found[ByteTokenizer::kBos], lanes);
    found.erase(ByteTokenizer::kBos);
    ASSERT_EQ(found, expected) << "seed " << seed;
  }
}

TEST(Lane, ContinuesFromAnyStateWithTheSameTokens) {
  const auto documents = random_documents(5, 30, 60);
  const LaneContext context(documents, kTokenizer, options(3, 16));
  for (int64_t lane = 0; lane < 3; ++lane) {
    Lane whole(context, lane);
    for (int i = 0; i < 3000; ++i) {
      Lane resumed(context, lane, whole.state());
      const auto expected = whole.pending();
      const auto found = resumed.pending();
      ASSERT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
      whole.consume(std::min<int64_t>(1 + i % 5, static_cast<int64_t>(expected.size())));
    }
    EXPECT_GT(context.epoch(lane, whole.state()), 1);
  }
}

TEST(Lane, BosAndEosAreAddedWhereAsked) {
  const MemoryDocuments documents({"abcdefghij"});
  auto plain = options(1, 4);
  plain.prepend_bos = false;
  const LaneContext context(documents, kTokenizer, plain);
  EXPECT_EQ(Lane(context, 0).pending().front(), 'a');
  EXPECT_EQ(Lane(context, 0).pending().back(), ByteTokenizer::kEos);

  const ByteTokenizer without_eos(false, -1);
  const LaneContext other(documents, without_eos, options(1, 4));
  EXPECT_EQ(Lane(other, 0).pending().front(), ByteTokenizer::kBos);
  EXPECT_EQ(Lane(other, 0).pending().back(), 'j');
}

TEST(Lane, PassesOverSegmentsWithoutTokens) {
  const ByteTokenizer drops(true, -1);
  const MemoryDocuments documents({"          ", "ab", "          ", "cdefgh"});
  auto plain = options(1, 4);
  plain.prepend_bos = false;
  const LaneContext context(documents, drops, plain);
  Lane lane(context, 0);
  std::string text;
  while (text.size() < 16) {
    const auto pending = lane.pending();
    ASSERT_FALSE(pending.empty());
    text += drops.decode(pending);
    lane.consume(static_cast<int64_t>(pending.size()));
  }
  EXPECT_EQ(text, "abcdefghabcdefgh");
}

TEST(Lane, RefusesImpossibleOptions) {
  const MemoryDocuments documents({std::string(1000, 'a')});
  const auto message =
      error_of([&] { LaneContext(documents, kTokenizer, options(1, 1)); }, ErrorCode::kUsage);
  EXPECT_NE(message.find("data.sequence_length is 1, expected at least 2"), std::string::npos);
  error_of([&] { LaneContext(documents, kTokenizer, options(0, 8)); }, ErrorCode::kUsage);
  error_of([&] { LaneContext(documents, kTokenizer, options(1, int64_t{1} << 40)); },
           ErrorCode::kUsage);
}

TEST(Lane, RefusesACorpusSmallerThanOneBatch) {
  const MemoryDocuments documents({std::string(98, 'a')});  // 100 tokens with BOS and EOS
  EXPECT_NO_THROW(LaneContext(documents, kTokenizer, options(4, 25)));
  const auto message =
      error_of([&] { LaneContext(documents, kTokenizer, options(4, 26)); }, ErrorCode::kUsage);
  for (const char* part :
       {"memory.arrow", "smaller than one batch", "98 bytes", "100 tokens", "need 104", "add text",
        "--validation-fraction", "data.sequence_length"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
  }
}

TEST(Lane, RefusesIdsOutsideTheVocabulary) {
  const MemoryDocuments documents({std::string(10000, 'a')});
  auto small = options(1, 4);
  small.vocab_size = 257;  // no place for EOS
  const LaneContext context(documents, kTokenizer, small);
  const auto message = error_of([&] { Lane(context, 0).pending(); }, ErrorCode::kInvalid);
  EXPECT_NE(message.find("id 257 in document 0, expected 0 to 256"), std::string::npos) << message;
}

TEST(LaneState, PlacesThatAreNotInTheCorpusAreRefused) {
  const MemoryDocuments documents(std::vector<std::string>(50, "0123456789"));
  const LaneContext context(documents, kTokenizer, options(1, 16));
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  for (const LaneState& state : {LaneState{0, 3, 0},
                                 {0, 500, 0},
                                 {0, kHuge, 0},
                                 {0, -1, 0},
                                 {-1, 0, 0},
                                 {kHuge, 0, 0},
                                 {0, 0, -1}}) {
    const auto message = error_of([&] { const Lane lane(context, 0, state); }, ErrorCode::kInvalid);
    EXPECT_NE(message.find("lane 0 cannot continue"), std::string::npos) << message;
  }
  for (const int64_t token : {int64_t{12}, kHuge}) {
    Lane lane(context, 0, {0, 10, token});
    const auto message = error_of([&] { lane.pending(); }, ErrorCode::kInvalid);
    EXPECT_NE(message.find("which has 12"), std::string::npos) << message;
  }
  EXPECT_EQ(Lane(context, 0, {0, 10, 11}).pending().size(), 1u);
}

}  // namespace
}  // namespace skein
