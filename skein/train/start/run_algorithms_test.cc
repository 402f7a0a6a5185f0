#include "skein/train/start/run_algorithms.h"

#include <gtest/gtest.h>

#include "skein/base/error.h"
#include "tests/comm/rank_threads.h"

namespace skein {
namespace {

// Kernels of a rank that runs these problems and on whose machine its own algorithm is the fastest.
struct FakeKernels {
  std::vector<std::string> problems;
  std::string fastest;
  std::string library = "a GPU, cuBLASLt 1";
  std::map<std::string, std::string> adopted = {};
  std::map<std::string, std::string> chosen = {};
  int num_measured = 0;

  AlgorithmKernels kernels() {
    return {[this] {
              return AlgorithmChoices{library, chosen};
            },
            [this](const AlgorithmChoices& choices) {
              for (const auto& [problem, algorithm] : choices.by_problem) {
                adopted[problem] = algorithm;
                if (chosen.contains(problem)) chosen[problem] = algorithm;
              }
            },
            [this] {
              for (const std::string& problem : problems) {
                if (chosen.contains(problem)) continue;
                const auto found = adopted.find(problem);
                num_measured += found == adopted.end();
                chosen[problem] = found == adopted.end() ? fastest : found->second;
              }
            }};
  }
};

// Two stages of two data ranks; each rank alone would choose a different algorithm.
const Mesh kMesh = Mesh::standard(2, 2, 1, 1);
FakeKernels kernels_of(int rank) {
  const bool first_stage = rank < 2;
  return {first_stage ? std::vector<std::string>{"layer", "embed"}
                      : std::vector<std::string>{"layer", "head"},
          fmt::format("of{}", rank)};
}

TEST(RunAlgorithms, AreTheSameOnAllRanks) {
  std::vector<AlgorithmChoices> agreed(4);
  comm_test::run_rank_threads(4, [&](const WorldOptions& options) {
    const auto world = make_world(options);
    FakeKernels fake = kernels_of(options.rank);
    agreed[options.rank] = agree_on_algorithms(*world, kMesh, fake.kernels(), {});
    const char* own = options.rank < 2 ? "embed" : "head";
    EXPECT_EQ(fake.chosen.at("layer"), "of0");
    EXPECT_EQ(fake.chosen.at(own), options.rank < 2 ? "of0" : "of2");
    EXPECT_EQ(fake.num_measured, options.rank % 2 == 0 ? 2 : 0);
  });
  const AlgorithmChoices expected = {"a GPU, cuBLASLt 1",
                                     {{"embed", "of0"}, {"head", "of2"}, {"layer", "of0"}}};
  EXPECT_EQ(agreed, std::vector<AlgorithmChoices>(4, expected));
}

TEST(RunAlgorithms, OfTheCheckpointStay) {
  const AlgorithmChoices kept = {"a GPU, cuBLASLt 1", {{"layer", "kept"}, {"unused", "kept too"}}};
  comm_test::run_rank_threads(4, [&](const WorldOptions& options) {
    const auto world = make_world(options);
    FakeKernels fake = kernels_of(options.rank);
    fake.chosen["layer"] = "chosen before";  // as measuring the ceiling may do
    const AlgorithmChoices agreed = agree_on_algorithms(*world, kMesh, fake.kernels(), kept);
    EXPECT_EQ(fake.chosen.at("layer"), "kept");
    EXPECT_EQ(agreed.by_problem,
              (std::map<std::string, std::string>{
                  {"embed", "of0"}, {"head", "of2"}, {"layer", "kept"}, {"unused", "kept too"}}));
  });
}

TEST(RunAlgorithms, OfAnotherLibraryAreChosenAnew) {
  const AlgorithmChoices kept = {"a GPU, cuBLASLt 0", {{"layer", "kept"}}};
  comm_test::run_rank_threads(4, [&](const WorldOptions& options) {
    const auto world = make_world(options);
    FakeKernels fake = kernels_of(options.rank);
    const AlgorithmChoices agreed = agree_on_algorithms(*world, kMesh, fake.kernels(), kept);
    EXPECT_EQ(agreed.library, "a GPU, cuBLASLt 1");
    EXPECT_EQ(agreed.by_problem.at("layer"), "of0");
    // A device without kernels that choose returns `kept`.
    EXPECT_EQ(agree_on_algorithms(*world, kMesh, {}, kept), kept);
  });
}

TEST(RunAlgorithms, RanksOfDifferentLibrariesAreRefused) {
  comm_test::run_rank_threads(2, [&](const WorldOptions& options) {
    const auto world = make_world(options);
    FakeKernels fake{{"layer"}, "x"};
    fake.library = fmt::format("a GPU, cuBLASLt {}", options.rank);
    try {
      agree_on_algorithms(*world, Mesh::standard(1, 2, 1, 1), fake.kernels(), {});
      ADD_FAILURE() << "rank " << options.rank << " agreed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_NE(std::string(error.what())
                    .find("rank 1 has a GPU, cuBLASLt 1, rank 0 has a GPU, cuBLASLt 0"),
                std::string::npos)
          << error.what();
    }
  });
}

TEST(RunAlgorithms, GoThroughJson) {
  const AlgorithmChoices choices = {"a GPU, cuBLASLt 130100", {{"1x2x3 bf16", "00ff"}, {"x", ""}}};
  EXPECT_EQ(algorithms_from_json(algorithms_to_json(choices), "test"), choices);
  EXPECT_TRUE(algorithms_to_json({}).is_null());
  EXPECT_EQ(algorithms_from_json(nullptr, "test"), AlgorithmChoices());
}

TEST(RunAlgorithms, SayWhatIsWrong) {
  for (const char* text :
       {"[]", "3", "{}", R"({"library": 3, "by_problem": {}})",
        R"({"library": "a", "by_problem": {"b": 3}})", R"({"library": "a", "by_problem": []})"}) {
    try {
      algorithms_from_json(Json::parse(text), "manifest.json");
      ADD_FAILURE() << text << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalid);
      EXPECT_NE(std::string(error.what()).find("manifest.json: algorithms: expected"),
                std::string::npos);
    }
  }
}

}  // namespace
}  // namespace skein
