// A vocabulary that the tensor ranks do not divide: padded in memory, so that training is what one
// worker does; checkpoints and exports hold the rows that the model has.
#include "skein/checkpoint/format/safetensors.h"
#include "tests/parallel_job.h"
#include "tests/safetensors_file.h"

namespace skein {
namespace {

constexpr int64_t kRows = 321, kSteps = 4;

const ParallelJob& job() {
  static const ParallelJob job;
  return job;
}

Overrides setting(int64_t steps, const Overrides& layout, const std::string& precision = "fp32") {
  Overrides all = ParallelJob::setting(steps, precision) +
                  Overrides{fmt::format("model.vocab_size={}", kRows)} + layout;
  return all;
}

Overrides tensor(int64_t workers, int64_t degree) {
  return {fmt::format("launch.workers={}", workers), fmt::format("parallel.tensor={}", degree)};
}

void expect_rows(const std::string& run) {
  const CheckpointReader reader(job().checkpoint(run, kSteps));
  int64_t found = 0;
  for (const ManifestTensor& stored : reader.manifest().tensors) {
    const bool is_vocabulary =
        stored.name.ends_with("embed_tokens.weight") || stored.name.ends_with("lm_head.weight");
    if (!is_vocabulary) continue;
    EXPECT_EQ(stored.shape, (Shape{kRows, 64})) << stored.name;
    ++found;
  }
  EXPECT_GE(found, 3);  // at least the embedding and its moments
  expect_checkpoints_good(job().run(run));
  const fs::path out = job().folder / "exported";
  fs::remove_all(out);
  TinyJob::must({"checkpoint", "export", job().run(run).string(), "--out", out.string()});
  const test::SafetensorsFile file(out / "model.safetensors");
  EXPECT_EQ(file.find("model.embed_tokens.weight")->shape, (Shape{kRows, 64}));
  EXPECT_EQ(read_json((out / "config.json").string()).at("vocab_size"), kRows);
}

std::string curve_problem(const std::string& run, const std::string& other) {
  Closeness worst;
  return not_close(read_curve(job().run(run)), read_curve(job().run(other)), &worst);
}

struct Case {
  const char* name;
  Overrides overrides;
  bool tied = false;
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class OddVocabulary : public ::testing::TestWithParam<Case> {};

TEST_P(OddVocabulary, TrainsAsOneWorkerDoes) {
  const Overrides tied = {fmt::format("model.tie_word_embeddings={}", GetParam().tied)};
  job().trained("one", setting(kSteps, tied));
  const Outcome split = job().run_for("split", setting(kSteps, GetParam().overrides + tied));
  ASSERT_EQ(split.exit_code, 0) << split.err;
  EXPECT_NE(split.err.find("does not divide vocab_size 321"), std::string::npos) << split.err;
  EXPECT_EQ(curve_problem("one", "split"), "");
  expect_rows("split");
  for (const char* run : {"one", "split"}) job().remove(run);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, OddVocabulary,
    ::testing::Values(
        Case{"tensor2", tensor(2, 2)}, Case{"tensor2_tied", tensor(2, 2), true},
        Case{"tensor4_without_sequence", tensor(4, 4) + Overrides{"parallel.sequence=false"}},
        Case{"tensor8", tensor(8, 8)},  // key-value heads are replicated
        Case{"data2_tensor2_zero3", tensor(4, 2) + Overrides{"parallel.zero=3"}},
        Case{"pipeline2_tensor2_tied", tensor(4, 2) + Overrides{"parallel.pipeline=2"}, true}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(OddVocabularyRuns, GoOnWithOtherTensorRanks) {
  job().trained("one", setting(kSteps, {}, "mixed"));
  const auto train = [&](int64_t steps, const Overrides& layout) {
    const Outcome outcome = job().run_for("moves", setting(steps, layout, "mixed"));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  };
  train(1, tensor(2, 2));
  train(2, {});
  train(3, tensor(4, 4));
  train(kSteps, tensor(4, 2) + Overrides{"parallel.zero=2"});
  // In bf16 a weight may round to the neighbour.
  Closeness worst;
  EXPECT_EQ(not_close(read_curve(job().run("one")), read_curve(job().run("moves")), &worst,
                      {.loss = 2e-3, .grad_norm = 2e-2, .param_norm = 1e-4}),
            "");
  expect_rows("moves");
  for (const char* run : {"one", "moves"}) job().remove(run);
}

TEST(OddVocabularyRuns, BeginWithTheWeightsOfAModel) {
  job().trained("source", setting(1, {}));
  const fs::path folder = job().folder / "source_hf";
  TinyJob::must({"checkpoint", "export", job().run("source").string(), "--out", folder.string()});
  const Overrides from = {"model.init_from=" + folder.string()};
  job().trained("one", setting(kSteps, from));
  const Outcome split = job().run_for("split", setting(kSteps, from + tensor(2, 2)));
  ASSERT_EQ(split.exit_code, 0) << split.err;
  EXPECT_EQ(curve_problem("one", "split"), "");
  expect_rows("split");
}

TEST(OddVocabularyRuns, ArePlannedAndSaidSo) {
  Arguments arguments = job().arguments("plan", "planned", setting(kSteps, {"parallel.tensor=2"}));
  arguments.insert(arguments.end(), {"--ranks", "2", "--json"});
  const Json plan = Json::parse(TinyJob::must(arguments).out);
  EXPECT_NE(plan.at("notes").dump().find("padded to 322 rows"), std::string::npos) << plan;
}

}  // namespace
}  // namespace skein
