#include "skein/compile/whole_step.h"

#include <gmock/gmock.h>

#include "skein/ops/ops.h"
#include "skein/stablehlo/cells.h"
#include "tests/tiny_spec.h"

namespace skein {
namespace {

using testing::ElementsAre;

ProgramSet planned(const StepSpec& spec) {
  return plan_training(training_graphs(spec), spec, cpu_kernels());
}

std::vector<std::string> names(const ProgramSet& programs) {
  std::vector<std::string> found;
  for (const Program& program : programs.programs) found.push_back(program.name);
  return found;
}

std::vector<int> nodes(const Program& program) {
  std::vector<int> found;
  for (const Instruction& instruction : program.instructions) found.push_back(instruction.node);
  return found;
}

int64_t num_kept_gradients(const ProgramSet& programs) {
  return std::ranges::count_if(stablehlo::cells_kept(programs), [](const stablehlo::Cell& cell) {
    return cell.arena == Arena::kGradients;
  });
}

TEST(WholeStep, HasAllProgramsOfAStepInTheirOrder) {
  const StepSpec spec = tiny_spec(Mesh::standard(1, 2, 1, 2), /*micro_batches=*/1);
  const ProgramSet parts = planned(spec);
  std::vector<int> all;
  for (const char* name : {"forward", "backward.last", "update"}) {
    const std::vector<int> of_part = nodes(parts.program(name));
    all.insert(all.end(), of_part.begin(), of_part.end());
  }
  ProgramSet joined = parts;
  join_step(joined, spec);
  EXPECT_THAT(names(joined), ElementsAre("step", "evaluate", "evaluate_total"));
  EXPECT_EQ(nodes(joined.program("step")), all);
  // Those of products are stored, not added to; nobody reads them after the step.
  EXPECT_GE(num_kept_gradients(parts) - num_kept_gradients(joined), 2 * 7 + 1);
}

TEST(WholeStep, IsSeveralProgramsWhereTheyRunSeveralTimes) {
  for (const StepSpec& spec : {tiny_spec(Mesh::standard(1, 1, 1, 1), /*micro_batches=*/2),
                               tiny_spec(Mesh::standard(2, 1, 1, 1), /*micro_batches=*/1)}) {
    EXPECT_FALSE(is_one_program(spec));
    const ProgramSet parts = planned(spec);
    ProgramSet joined = parts;
    join_step(joined, spec);
    EXPECT_EQ(names(joined), names(parts));
  }
}

}  // namespace
}  // namespace skein
