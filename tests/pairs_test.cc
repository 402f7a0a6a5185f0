// Micro-batches in pairs (parallel.pairs): in every layout the losses, norms and the last
// checkpoint are those of the same layout without, bit for bit.
#include "skein/compile/step_programs.h"
#include "skein/ops/ops.h"
#include "tests/parallel_job.h"

namespace skein {
namespace {

constexpr int64_t kSteps = 4;

const ParallelJob& job() {
  static const ParallelJob job;
  return job;
}

// Where a virtual rank has three micro-batches, and a data rank one virtual rank or two.
Overrides in_pairs(const RunLayout& layout, int64_t virtual_ranks, bool pairs) {
  const int64_t width = layout.data * virtual_ranks;
  return ParallelJob::setting(kSteps) + layout.overrides() +
         Overrides{fmt::format("parallel.reduction_width={}", width),
                   fmt::format("batch.global_sequences={}", 3 * width * layout.micro_sequences),
                   fmt::format("parallel.pairs={}", pairs)};
}

std::vector<RunLayout> without_pipeline(std::vector<RunLayout> layouts) {
  std::erase_if(layouts, [](const RunLayout& layout) {
    const bool waits = layout.tensor > 1 || layout.context > 1 || layout.zero == 3;
    return layout.pipeline > 1 || layout.has_one_micro_batch() || !waits;
  });
  return layouts;
}

std::vector<RunLayout> every_layout() {
  std::vector<RunLayout> all = without_pipeline(all_layouts());
  for (const RunLayout& layout : without_pipeline(layouts_with_options())) all.push_back(layout);
  return all;
}

void expect_the_same_bits(const RunLayout& layout, int64_t virtual_ranks, const Overrides& more) {
  SCOPED_TRACE(fmt::format("{}, {} virtual ranks each, {}", layout.name(), virtual_ranks,
                           fmt::join(more, " ")));
  for (const bool pairs : {false, true}) {
    const char* name = pairs ? "pairs" : "alone";
    const Outcome outcome = job().run_for(name, in_pairs(layout, virtual_ranks, pairs) + more);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("parallel.pairs"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(different_bits(read_curve(job().run("alone")), read_curve(job().run("pairs"))), "");
  EXPECT_EQ(different_state(job().checkpoint("alone", kSteps), job().checkpoint("pairs", kSteps)),
            "");
  job().remove("alone");
  job().remove("pairs");
}

TEST(Pairs, OfEveryFourthLayoutBuild) {
  const std::vector<RunLayout> all = every_layout();
  for (size_t i = 0; i < all.size(); i += 4) {
    const RunLayout& layout = all[i];
    try {
      const Config config = load_config(job().config().string(), in_pairs(layout, 2, true));
      const DecoderConfig model = model_of(config, 320);
      const StepSpec spec = step_spec(
          config, model, parallel_layout(config, model, layout.num_workers(), /*rank=*/0));
      const ProgramSet programs = plan_training(training_graphs(spec), spec, cpu_kernels());
      EXPECT_FALSE(programs.program("pair").instructions.empty());
    } catch (const std::exception& error) {
      ADD_FAILURE() << layout.name() << ": " << error.what();
    }
  }
}

TEST(Pairs, KeepTheBits) {
  int64_t virtual_ranks = 1;
  for (const RunLayout& layout : sample(every_layout(), Cover::kValues, /*seed=*/1)) {
    expect_the_same_bits(layout, virtual_ranks, {});
    virtual_ranks = 3 - virtual_ranks;
  }
}

TEST(Pairs, KeepTheBitsInEveryPrecision) {
  RunLayout layout;
  layout.tensor = 2;
  layout.tied = true;
  for (const char* precision : {"bf16-sr", "mixed", "fp8"}) {
    expect_the_same_bits(layout, 1, {fmt::format("precision.mode={}", precision)});
  }
}

TEST(Pairs, KeepTheBitsOfOffloadedActivations) {
  RunLayout layout;
  layout.tensor = 2;
  layout.offload = true;
  expect_the_same_bits(layout, 2, {});
}

// Where data ranks have unequal shares, some run empty micro-batches for ZeRO 3, also in pairs.
TEST(Pairs, KeepTheBitsOfUnequalShares) {
  RunLayout layout;
  layout.data = 2;
  layout.zero = 3;
  expect_the_same_bits(layout, 1,
                       {"parallel.reduction_width=3", "batch.global_sequences=9",
                        "validate.every_steps=2", "data.validation=" + job().corpus().string()});
}

TEST(Pairs, GoOnWithTheBitsOfARunWithout) {
  RunLayout layout;
  layout.context = 2;
  job().trained("whole", in_pairs(layout, 1, false));
  job().trained("parts", in_pairs(layout, 1, false) + Overrides{"run.steps=2"});
  const Outcome outcome = job().run_for("parts", in_pairs(layout, 1, true));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(different_bits(read_curve(job().run("whole")), read_curve(job().run("parts"))), "");
  EXPECT_EQ(different_state(job().checkpoint("whole", kSteps), job().checkpoint("parts", kSteps)),
            "");
}

TEST(Pairs, AreRefusedWhereTheyCannotBe) {
  RunLayout layout;
  layout.pipeline = 2;
  const Outcome staged = job().run_for("refused", in_pairs(layout, 1, true));
  EXPECT_EQ(staged.exit_code, 2);
  EXPECT_NE(staged.err.find("[parallel] pairs is true with pipeline 2"), std::string::npos)
      << staged.err;
  layout.pipeline = 1;
  layout.tensor = 2;
  const Outcome waiting =
      job().run_for("refused", in_pairs(layout, 1, true) + Overrides{"parallel.overlap=false"});
  EXPECT_EQ(waiting.exit_code, 2);
  EXPECT_NE(waiting.err.find("pairs is true and overlap false"), std::string::npos) << waiting.err;
}

TEST(Pairs, SayWhereTheyDoNothing) {
  RunLayout layout;
  const Outcome alone = job().run_for("idle", in_pairs(layout, 1, true));
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_NE(alone.err.find("parallel.pairs has no effect but to take memory"), std::string::npos)
      << alone.err;
  layout.tensor = 2;
  const Outcome single =
      job().run_for("single", in_pairs(layout, 1, true) + Overrides{"batch.global_sequences=1"});
  EXPECT_EQ(single.exit_code, 0) << single.err;
  EXPECT_NE(single.err.find("a virtual rank has one micro-batch a step"), std::string::npos)
      << single.err;
}

}  // namespace
}  // namespace skein
