// Any number of data ranks serves any reduction width: losses, norms and the last checkpoint are
// those of one data rank bit for bit, also where the ranks have unequal shares of the virtual
// ranks, with every other kind of parallelism, and over stops at which their number changes.
#include "tests/parallel_job.h"

namespace skein {
namespace {

constexpr int64_t kSteps = 4;

const ParallelJob& job() {
  static const ParallelJob job;
  return job;
}

// `width` virtual ranks of `micro_batches` sequences each.
Overrides setting(int64_t width, int64_t micro_batches, const std::string& precision = "fp32",
                  int64_t steps = kSteps) {
  return ParallelJob::setting(steps, precision) +
         Overrides{"model.num_hidden_layers=3", fmt::format("parallel.reduction_width={}", width),
                   fmt::format("batch.global_sequences={}", width * micro_batches)};
}

// The name of a run with one data rank, made once for the same settings.
std::string alone(const Overrides& overrides) {
  static std::map<Overrides, std::string> runs;
  const auto [run, is_new] = runs.try_emplace(overrides, fmt::format("alone_{}", runs.size()));
  if (is_new) job().trained(run->second, overrides);
  return run->second;
}

// Step, loss and label tokens of each validation.
std::vector<std::string> validations(const std::string& run) {
  std::vector<std::string> all;
  for (const OrderedJson& event : read_json_lines(job().run(run) / "events.jsonl")) {
    if (event.at("event") != "validation") continue;
    all.push_back(fmt::format("{} {} {}", event.at("step").dump(), event.at("loss").dump(),
                              event.at("tokens").dump()));
  }
  return all;
}

void expect_same(const std::string& expected, const std::string& found, int64_t steps = kSteps) {
  EXPECT_EQ(different_bits(read_curve(job().run(expected)), read_curve(job().run(found))), "");
  EXPECT_EQ(validations(expected), validations(found));
  EXPECT_EQ(different_state(job().checkpoint(expected, steps), job().checkpoint(found, steps)), "");
}

// Trains with so many data ranks, each of `ranks` processes that `more` asks for.
void expect_same_as_alone(const Overrides& base, int64_t data, const Overrides& more = {},
                          int64_t ranks = 1) {
  SCOPED_TRACE(
      fmt::format("{} data ranks, {} {}", data, fmt::join(base, " "), fmt::join(more, " ")));
  const Overrides workers = {fmt::format("launch.workers={}", data * ranks)};
  const Overrides replica = {fmt::format("launch.workers={}", ranks)};
  const std::string expected = alone(base + replica + more);
  const Outcome outcome = job().run_for("shared", base + workers + more);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  expect_same(expected, "shared");
  job().remove("shared");
}

TEST(DataDegrees, EveryOneServesEveryWidth) {
  for (const int64_t width : {3, 4, 5, 6, 7}) {
    for (int64_t data = 2; data <= width; ++data) {
      expect_same_as_alone(setting(width, 1), data);
    }
  }
  for (const int64_t data : {5, 7, 8}) expect_same_as_alone(setting(12, 1), data);
}

TEST(DataDegrees, WithSeveralMicroBatchesAndEveryPrecision) {
  expect_same_as_alone(setting(4, 2), 3);
  for (const char* precision : {"mixed", "bf16-sr", "fp8"}) {
    expect_same_as_alone(setting(5, 1, precision), 3);
  }
}

// With stage 3 ranks that have fewer micro-batches run empty ones.
TEST(DataDegrees, WithEveryZeroStage) {
  for (const char* zero : {"parallel.zero=0", "parallel.zero=1", "parallel.zero=2"}) {
    expect_same_as_alone(setting(4, 1), 3, {zero});
  }
  const Overrides validation = {"data.validation=" + job().corpus().string(),
                                "validate.every_steps=2", "validate.batches=1"};
  for (const char* precision : {"fp32", "fp8"}) {
    expect_same_as_alone(setting(4, 2, precision), 3, Overrides{"parallel.zero=3"} + validation);
    EXPECT_EQ(validations(alone(setting(4, 2, precision) +
                                Overrides{"launch.workers=1", "parallel.zero=3"} + validation))
                  .size(),
              2u);
  }
  expect_same_as_alone(setting(7, 2), 3, {"parallel.zero=3"});
  expect_same_as_alone(setting(4, 2), 3, {"parallel.zero=3", "parallel.pipeline=2"}, 2);
}

TEST(DataDegrees, WithOtherParallelism) {
  expect_same_as_alone(setting(4, 1), 3, {"parallel.tensor=2"}, 2);
  expect_same_as_alone(setting(4, 1), 3, {"parallel.context=2"}, 2);
  expect_same_as_alone(setting(4, 1), 3, {"parallel.pipeline=2"}, 2);
  expect_same_as_alone(
      setting(5, 2), 3,
      {"parallel.pipeline=2", "model.tie_word_embeddings=true", "memory.recompute=full"}, 2);
}

TEST(DataDegrees, ComeAndGo) {
  const std::string expected = alone(setting(4, 2, "mixed", 8));
  const std::pair<int64_t, int64_t> starts[] = {{4, 2}, {3, 4}, {1, 5}, {3, 7}, {4, 8}};
  for (const auto& [data, steps] : starts) {
    const Outcome outcome =
        job().run_for("elastic", setting(4, 2, "mixed", steps) +
                                     Overrides{fmt::format("launch.workers={}", data)});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  expect_same(expected, "elastic", 8);
}

// The plan is that of the rank that does most, and says that others wait.
TEST(DataDegrees, PlanTellsUnequalShares) {
  const Overrides three = setting(4, 1) + Overrides{"launch.workers=3"};
  const OrderedJson plan = OrderedJson::parse(
      TinyJob::must(job().arguments("plan", "planned", three) + Overrides{"--json"}).out);
  EXPECT_EQ(plan.at("virtual_ranks"),
            OrderedJson({{"all", 4}, {"most_of_a_rank", 2}, {"least_of_a_rank", 1}}));
  const Outcome text = TinyJob::must(job().arguments("plan", "planned", three));
  EXPECT_NE(text.out.find("3 data ranks share 4 virtual ranks, 1 to 2 each"), std::string::npos)
      << text.out;
  const Outcome even = TinyJob::must(
      job().arguments("plan", "planned", setting(4, 1) + Overrides{"launch.workers=2"}));
  EXPECT_EQ(even.out.find("virtual ranks"), std::string::npos) << even.out;
  // To the byte what the first rank allocates, who has two of the four.
  job().trained("allocated", three);
  const OrderedJson start = read_json_lines(job().run("allocated") / "events.jsonl").front();
  for (const char* arena : {"weights", "gradients", "optimizer", "activations", "workspace"}) {
    EXPECT_EQ(plan.at("per_rank").at(fmt::format("{}_bytes", arena)),
              start.at("allocated_bytes").at(arena))
        << arena;
  }
}

TEST(DataDegrees, AreRefusedWhereTheyCannotServe) {
  expect_refused(job().train("refused", setting(4, 2) + Overrides{"launch.workers=5"}), 2,
                 {"reduction_width is 4", "5 data ranks", "at least 5", "at most 4 data ranks"});
  EXPECT_FALSE(fs::exists(job().run("refused")));
}

}  // namespace
}  // namespace skein
