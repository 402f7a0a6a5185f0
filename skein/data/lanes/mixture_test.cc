#include "skein/data/lanes/mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "skein/base/error.h"
#include "skein/data/lanes/lane_testing.h"
#include "skein/data/lanes/packer.h"

namespace skein {
namespace {

const ByteTokenizer kTokenizer;

LaneOptions options(int64_t global_sequences, int64_t sequence_length) {
  return {.seed = 3,
          .global_sequences = global_sequences,
          .sequence_length = sequence_length,
          .may_be_small = true};
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

// Corpora whose documents are made of one letter each, so that a token tells where it comes from.
class Letters {
 public:
  Letters(const std::vector<double>& weights, int64_t lanes, int64_t length,
          int64_t document_bytes = 500) {
    documents_.reserve(weights.size());
    contexts_.reserve(weights.size());
    for (size_t i = 0; i < weights.size(); ++i) {
      std::vector<std::string> texts;
      const auto letter = static_cast<char>('a' + i);
      const int64_t bytes = document_bytes * static_cast<int64_t>(i + 1);
      for (int64_t d = 0; d < 200; ++d) texts.emplace_back(1 + d * 7919 % (2 * bytes), letter);
      documents_.emplace_back(std::move(texts));
      contexts_.emplace_back(documents_.back(), kTokenizer, options(lanes, length));
      parts_.push_back({&contexts_.back(), std::string(1, letter), weights[i]});
    }
  }
  Letters(const Letters&) = delete;

  Mixture mixture() const { return Mixture(parts_); }
  std::vector<Mixture::Source>& parts() { return parts_; }

 private:
  std::vector<MemoryDocuments> documents_;
  std::vector<LaneContext> contexts_;
  std::vector<Mixture::Source> parts_;
};

// Of the next `steps` batches, the share of each corpus in the tokens, by RowSegment::corpus, which
// must be what the letters say.
std::vector<double> shares(Packer& packer, Batch& batch, int64_t steps, size_t num_corpora) {
  std::vector<double> counts(num_corpora);
  std::vector<RowSegment> segments;
  for (int64_t step = 0; step < steps; ++step) {
    packer.fill(batch, &segments);
    for (const RowSegment& segment : segments) {
      counts[segment.corpus] += static_cast<double>(segment.end - segment.begin);
      for (const int32_t id : batch.row(batch.tokens, segment.row)
                                  .subspan(segment.begin, segment.end - segment.begin)) {
        if (id < ByteTokenizer::kBos) {
          EXPECT_EQ(id, 'a' + static_cast<int>(segment.corpus));
        }
      }
    }
  }
  const double all = static_cast<double>(steps * batch.sequences * batch.sequence_length);
  for (double& count : counts) count /= all;
  return counts;
}

TEST(Mixture, GivesEveryCorpusItsShareOfTheTokensWhateverTheirDocuments) {
  const Letters letters({5, 3, 2}, 32, 1024);
  Packer packer(letters.mixture(), 0, 32);
  Batch batch(0, 32, 1024);
  const std::vector<double> expected = {0.5, 0.3, 0.2};
  // The first batches are near it already, since lanes begin with different corpora ...
  const auto first = shares(packer, batch, 4, 3);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(first[i], expected[i], 0.08) << i;
  // ... and in the long run it is exact to a few documents a lane.
  const auto later = shares(packer, batch, 200, 3);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(later[i], expected[i], 0.006) << i;
}

TEST(Mixture, OneCorpusIsItsLanes) {
  const Letters letters({0.5}, 4, 64);
  const Mixture mixture = letters.mixture();
  for (int64_t lane = 0; lane < 4; ++lane) {
    Lane plain(mixture.corpus(0), lane);
    MixtureLane mixed(mixture, lane);
    for (int i = 0; i < 500; ++i) {
      const auto expected = plain.pending(), found = mixed.pending();
      ASSERT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
      const auto count = std::min<int64_t>(1 + i % 50, static_cast<int64_t>(found.size()));
      plain.consume(count);
      mixed.consume(count);
      ASSERT_EQ(mixed.state().lanes[0], plain.state());
      ASSERT_TRUE(mixed.state().read_tokens.empty());
    }
  }
}

TEST(Mixture, ContinuesFromAnyStateAtAnySplitOfLanesWithTheSameRows) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    const int64_t lanes = 1 + static_cast<int64_t>(seed % 5);
    const Letters letters({1, 2.5, 0.25}, lanes, 32, 40);
    const Mixture mixture = letters.mixture();
    Packer whole(mixture, 0, lanes, {}, 2);
    Batch expected(0, lanes, 32);
    std::vector<MixtureState> states;
    for (int generation = 0; generation < 8; ++generation) {
      std::vector<MixtureState> saved;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        std::vector<MixtureState> part;
        Packer(mixture, lane, lane + 1, states).states(part);
        saved.push_back(part.at(0));
      }
      saved = lanes_from_json(parse_json(lanes_to_json(mixture, saved).dump(), "test"), mixture,
                              "test");
      std::vector<Packer> ranks;
      for (int64_t lane = 0; lane < lanes; ++lane)
        ranks.emplace_back(mixture, lane, lane + 1, saved);
      for (int64_t steps = static_cast<int64_t>(random() % 30); steps > 0; --steps) {
        whole.fill(expected);
        std::vector<int64_t> progress(3);
        for (int64_t lane = 0; lane < lanes; ++lane) {
          Batch own(lane, 1, 32);
          ranks[static_cast<size_t>(lane)].fill(own);
          const auto found = own.row(own.tokens, 0), wanted = expected.row(expected.tokens, lane);
          ASSERT_TRUE(std::equal(found.begin(), found.end(), wanted.begin()));
          for (size_t i = 0; i < 3; ++i) progress[i] += own.progress.at(i);
        }
        ASSERT_EQ(progress, expected.progress);
      }
      whole.states(states);
    }
  }
}

TEST(Mixture, CountsTheEpochsOfEachCorpus) {
  const Letters letters({1, 1}, 2, 256, 50);  // the second corpus has about twice the text
  const Mixture mixture = letters.mixture();
  Packer packer(mixture, 0, 2);
  Batch batch(0, 2, 256);
  for (int step = 0; step < 200; ++step) packer.fill(batch);
  const std::vector<double> progress(batch.progress.begin(), batch.progress.end());
  const std::vector<double> epochs = mixture.epochs(progress);
  const auto bytes = [&](size_t i) {
    return static_cast<double>(mixture.corpus(i).blocks().num_bytes());
  };
  EXPECT_GT(epochs[0], 1);
  EXPECT_NEAR(epochs[0] * bytes(0) / (epochs[1] * bytes(1)), 1, 0.1);
  EXPECT_NEAR(mixture.epoch(epochs),
              (epochs[0] * bytes(0) + epochs[1] * bytes(1)) / (bytes(0) + bytes(1)), 1e-9);
}

// After a change the new shares hold from there on: nothing is made up for.
TEST(Mixture, NewWeightsAndCorporaCountFromWhereTheyAreSet) {
  Letters letters({8, 1, 1}, 16, 512);
  const Mixture before({letters.parts()[0], letters.parts()[1]});
  Packer packer(before, 0, 16);
  Batch batch(0, 16, 512);
  shares(packer, batch, 100, 2);
  std::vector<MixtureState> states;
  packer.states(states);
  const Json saved = lanes_to_json(before, states);
  // The first goes, the third is new, and the second continues where it was.
  const Mixture after({letters.parts()[2], letters.parts()[1]});
  const auto continued = lanes_from_json(saved, after, "test");
  EXPECT_EQ(continued[3].lanes[1], states[3].lanes[1]);
  EXPECT_EQ(continued[3].lanes[0], LaneState{});
  EXPECT_EQ(continued[3].read_tokens, (std::vector<int64_t>{0, 0}));
  // A run that began with one corpus goes on with it in a mixture.
  const Mixture alone({letters.parts()[1]});
  std::vector<MixtureState> one;
  for (const MixtureState& state : states) one.push_back({{state.lanes[1]}, {}});
  EXPECT_EQ(lanes_from_json(lanes_to_json(alone, one), after, "test")[5].lanes[1],
            states[5].lanes[1]);
  // Other weights of the same corpora.
  letters.parts()[0].weight = 1;
  const Mixture even({letters.parts()[0], letters.parts()[1]});
  const auto reweighted = lanes_from_json(saved, even, "test");
  Packer next(even, 0, 16, reweighted);
  EXPECT_NEAR(shares(next, batch, 100, 3)[0], 0.5, 0.02);
  EXPECT_EQ(lanes_from_json(saved, before, "test"), states);
}

TEST(MixtureState, JsonOfOtherSourcesIsRefused) {
  const Letters letters({1, 2}, 2, 16);
  const Mixture mixture = letters.mixture();
  const Json good = lanes_to_json(mixture, std::vector<MixtureState>(2));
  const auto refused = [&](const Json& json) {
    return error_of([&] { lanes_from_json(json, mixture, "manifest.json"); }, ErrorCode::kInvalid);
  };
  for (const char* key : {"corpus_bytes", "corpus_documents", "blocks"}) {
    Json other = good;
    other["sources"][1][key] = 12345;
    EXPECT_NE(
        refused(other).find(fmt::format("the lanes of source b were saved with {} = 12345", key)),
        std::string::npos)
        << refused(other);
  }
  for (const char* lanes : {"[]", "[[0,0,0],[0,0,0]]", "[[[0,0,0,0]],[[0,0,0,0]]]",
                            "[[[0,0,0,0],[0,0,0]],[[0,0,0,0],[0,0,0,0]]]",
                            "[[[0,0,0,0],[0,0,0,-1]],[[0,0,0,0],[0,0,0,0]]]", "[{},{}]"}) {
    Json other = good;
    other["lanes"] = parse_json(lanes, "test");
    EXPECT_NE(refused(other).find("manifest.json"), std::string::npos) << lanes;
  }
  for (const char* sources : {"7", "[7,8]", "[{\"name\":1,\"weight\":1}]", "[{\"name\":\"a\"}]"}) {
    Json other = good;
    other["sources"] = parse_json(sources, "test");
    EXPECT_NE(refused(other).find("list of corpora"), std::string::npos) << sources;
  }
}

TEST(MixtureState, ReadsBackFromJson) {
  const auto documents = random_documents(1, 30, 100);
  const LaneContext context(documents, kTokenizer, options(3, 16));
  const std::vector<MixtureState> states = {
      {{{0, 0, 0}}, {}}, {{{12, 5, 7}}, {}}, {{{int64_t{1} << 40, 3, 1}}, {}}};
  const Json json = lanes_to_json(context, states);
  EXPECT_EQ(lanes_from_json(json, context, "manifest.json"), states);
  EXPECT_EQ(lanes_from_json(parse_json(json.dump(), "text"), context, "manifest.json"), states);
}

TEST(MixtureState, JsonOfAnotherRunIsRefused) {
  const auto documents = random_documents(1, 30, 100);
  const LaneContext context(documents, kTokenizer, options(2, 16));
  const Json good = lanes_to_json(context, std::vector<MixtureState>(2));
  const auto refused = [&](const Json& json) {
    return error_of([&] { lanes_from_json(json, context, "manifest.json"); }, ErrorCode::kInvalid);
  };
  for (const char* key : {"seed", "global_sequences", "corpus_bytes", "corpus_documents",
                          "segment_bytes", "blocks"}) {
    Json other = good;
    other[key] = 12345;
    EXPECT_NE(refused(other).find(fmt::format("{} = 12345", key)), std::string::npos);
    other.erase(key);
    EXPECT_NE(refused(other).find(fmt::format("{} = nothing", key)), std::string::npos);
  }
  for (const char* lanes : {"[]", "7", "null", "[[0,0,0]]", "[[0,0,0],[0,0]]", "[[0,0,0],[0,0,-1]]",
                            "[[0,0,0],[0,0,1.5]]", "[[0,0,0],[0,0,18446744073709551615]]",
                            "[[0,0,0],{}]", "[[0,0,0],[\"0\",0,0]]"}) {
    Json other = good;
    other["lanes"] = parse_json(lanes, "test");
    EXPECT_NE(refused(other).find("manifest.json"), std::string::npos) << lanes;
  }
  refused(Json::array());
  Json without = good;
  without.erase("lanes");
  refused(without);
}

}  // namespace
}  // namespace skein
