// `skein plan --print-stablehlo`: one text for all ranks of a stage, which does not grow with
// layers, parameters or ranks more than it must.
#include "skein/ops/ops.h"
#include "skein/plan/stage_modules.h"
#include "tests/places.h"
#include "tests/testing.h"
#include "tests/tiny_spec.h"

namespace skein {
namespace {

constexpr size_t kMegabyte = 1'000'000;

std::string config(const std::string& name) {
  return std::string(kSourceFolder) + "/configs/" + name + ".toml";
}

std::string printed(const std::string& name, const Arguments& more) {
  return TinyJob::must(Arguments{"plan", config(name), "--print-stablehlo"} + more).out;
}

int64_t count(const std::string& text, const std::string& what) {
  int64_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// With the attrs of each rank as its own programs have them.
std::string text_of_all_ranks(const StageModules& stage, StepSpec spec, const std::string& name) {
  spec.overlap = spec.in_pairs = false;
  const TrainingGraphs graphs = training_graphs(spec);
  const Program& program = stage.programs().program(name);
  const stablehlo::CellMap kept = stablehlo::cells_kept_by(
      {0, program.instructions.size()}, program, stablehlo::cells_kept(stage.programs()));
  stablehlo::ModuleRequest request{name, stage.programs().mesh, stage.ranks(), {}, kept};
  std::vector<ProgramSet> by_rank;
  for (const int64_t rank : stage.ranks()) {
    spec.layout.rank = rank;
    by_rank.push_back(plan_training(graphs, spec, {}));
  }
  for (const ProgramSet& one : by_rank) {
    request.instructions.emplace_back(one.program(name).instructions);
  }
  return stablehlo::write_module(request, stablehlo_rules()).text;
}

TEST(PlanStableHlo, SaysOfEveryRankWhatItsOwnProgramsSay) {
  for (const int zero : {0, 1, 3}) {
    StepSpec spec = tiny_spec(Mesh::standard(1, 2, 1, 2), 2);
    spec.layout.zero = zero;
    const StageModules stage(spec, "");
    ASSERT_EQ(stage.ranks().size(), 4U);
    int64_t programs = 0;
    stage.for_each("", [&](const StageModule& one) {
      ++programs;
      EXPECT_EQ(one.module.text, text_of_all_ranks(stage, spec, one.name)) << one.name;
    });
    EXPECT_GE(programs, 4);
  }
}

// The random streams of parameters are arguments of one function for each of their shapes.
TEST(PlanStableHlo, OfMoreLayersHasNotMoreFunctions) {
  const auto functions = [](int64_t layers) {
    StepSpec spec = tiny_spec(Mesh::standard(1, 1, 1, 1), 1);
    spec.model.num_hidden_layers = layers;
    int64_t functions = 0;
    StageModules(spec, "").for_each("", [&](const StageModule& one) {
      functions += count(one.module.text, "func.func private");
    });
    return functions;
  };
  EXPECT_EQ(functions(4), functions(2));
}

TEST(PlanStableHlo, Of7BOnFourThousandRanksIsShort) {
  const std::string text = printed("llama2-7b-trn1-4096", {});
  EXPECT_NE(text.find("mhlo.num_replicas = 4096 : i32"), std::string::npos);
  EXPECT_LT(text.size(), 20 * kMegabyte);
}

TEST(PlanStableHlo, OfEveryStageOf70BIsThere) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    const std::string rank = std::to_string(stage * 32);
    const std::string text =
        printed("llama2-70b-trn1-tp32-pp4", {"--ranks", "128", "--rank", rank});
    EXPECT_LT(text.size(), 20 * kMegabyte);
    EXPECT_EQ(count(text, "stablehlo.send") + count(text, "stablehlo.recv"), 0);
    EXPECT_NE(text.find("module @backward"), std::string::npos) << stage;
    EXPECT_NE(text.find("module @update.from_op_"), std::string::npos) << stage;
  }
}

TEST(PlanStableHlo, OfAProgramThatIsNotThereNamesThoseThatAre) {
  expect_refused(
      run_skein({"plan", config("llama2-70b-trn1-tp32-pp4"), "--print-stablehlo", "sideways"}), 2,
      {"--print-stablehlo sideways", "expected one of forward", "update.from_op_"});
}

}  // namespace
}  // namespace skein
