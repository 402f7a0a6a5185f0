#include "skein/launch/place/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "skein/base/error.h"
#include "skein/base/files/file.h"

namespace skein {
namespace {

using testing::HasSubstr;

// The error message of each of facts.size() ranks (threads here); "" where it agrees.
std::vector<std::string> outcomes(const std::vector<Facts>& facts) {
  std::string folder = testing::TempDir() + "/agreement_XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  std::vector<std::string> messages(facts.size());
  std::vector<std::thread> ranks;
  for (size_t rank = 0; rank < facts.size(); ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        const auto world = make_world({.rank = static_cast<int>(rank),
                                       .size = static_cast<int>(facts.size()),
                                       .rendezvous = folder});
        check_agreement(*world, facts[rank]);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kUsage) << error.what();
        messages[rank] = error.what();
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  fs::remove_all(folder);
  return messages;
}

// The error message, checked to be the same on every rank.
std::string refusal(const std::vector<Facts>& facts) {
  const std::vector<std::string> messages = outcomes(facts);
  for (const std::string& message : messages) EXPECT_EQ(message, messages.front());
  return messages.front();
}

const Facts kFacts = {{"configuration", "[run]\nseed = 1\nsteps = 20\n"},
                      {"mesh", "pp=1 dp=3 cp=1 tp=1"},
                      {"program", "0.1.0 0123456789abcdef"}};

Facts with(const std::string& name, const std::string& value) {
  Facts facts = kFacts;
  facts[name] = value;
  return facts;
}

TEST(Agreement, TheSameEverywhere) {
  EXPECT_EQ(refusal({kFacts}), "");
  EXPECT_EQ(refusal({kFacts, kFacts, kFacts}), "");
  EXPECT_EQ(refusal({{}, {}}), "");
}

TEST(Agreement, TheRankAndTheLineThatDifferAreNamed) {
  const Facts other = with("configuration", "[run]\nseed = 2\nsteps = 20\n");
  EXPECT_EQ(
      refusal({kFacts, kFacts, other}),
      "rank 2 of 3 was started with something else than rank 0 and the others. Rank 2: line 2 "
      "of the configuration is \"seed = 2\", expected \"seed = 1\". Start every rank with the "
      "same program and configuration");
  // The minority is named, even if it is rank 0.
  EXPECT_THAT(refusal({other, kFacts, kFacts}),
              HasSubstr("rank 0 of 3 was started with something else than rank 1 and the others"));
  EXPECT_THAT(refusal({kFacts, other}), HasSubstr("rank 1 of 2 was started with something else "
                                                  "than rank 0. Rank 1: line 2"));
  EXPECT_THAT(refusal({kFacts, with("mesh", "pp=3"), kFacts, with("mesh", "pp=4"), kFacts}),
              HasSubstr("ranks 1, 3 of 5 were started with something else than rank 0 and the "
                        "others. Rank 1: mesh is \"pp=3\", expected \"pp=1 dp=3 cp=1 tp=1\""));
}

TEST(Agreement, TextsOfAnyLengthAndBytes) {
  const std::string longer = kFacts.at("configuration") + "x = 1\n";
  EXPECT_THAT(refusal({kFacts, with("configuration", longer), kFacts}),
              HasSubstr("line 4 of the configuration is \"x = 1\", expected the end"));
  EXPECT_THAT(refusal({kFacts, with("configuration", "[run]\nseed = 1\nsteps = 20"), kFacts}),
              HasSubstr("the configuration differs in how a line ends"));
  EXPECT_THAT(refusal({kFacts, with("configuration", ""), kFacts}),
              HasSubstr("line 1 of the configuration is missing, expected \"[run]\""));
  EXPECT_THAT(refusal({kFacts, with("program", std::string(5000, 'a')), kFacts}),
              HasSubstr("program is \"" + std::string(200, 'a') + "…\", expected"));
  EXPECT_THAT(refusal({kFacts, with("mesh", std::string("a\0b", 3)), with("mesh", "a")}),
              HasSubstr("ranks 1, 2 of 3"));
  EXPECT_THAT(refusal({kFacts, with("extra", "1"), kFacts}), HasSubstr("only it says its extra"));
  EXPECT_THAT(refusal({kFacts, {}, kFacts}), HasSubstr("does not say its configuration"));
}

TEST(Agreement, TheProgramHasAnIdentity) {
  EXPECT_THAT(program_id(), testing::MatchesRegex("[0-9.]+ [0-9a-f]{32}"));
  EXPECT_EQ(program_id(), program_id());
}

}  // namespace
}  // namespace skein
