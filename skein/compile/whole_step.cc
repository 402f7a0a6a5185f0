#include "skein/compile/whole_step.h"

#include "skein/compile/program_runs.h"

namespace skein {

bool is_one_program(const StepSpec& spec) {
  return runs_one_micro_batch(spec) && spec.pipeline().num_stages == 1;
}

void join_step(ProgramSet& programs, const StepSpec& spec) {
  if (!is_one_program(spec)) return;
  std::vector<std::string> order;
  for (const ProgramRun& run : step_order(spec, programs)) order.push_back(run.program);
  order.emplace_back("update");
  Program step;
  step.name = kStepProgram;
  for (const std::string& name : order) {
    const Program& part = programs.program(name);
    step.instructions.insert(step.instructions.end(), part.instructions.begin(),
                             part.instructions.end());
  }
  std::erase_if(programs.programs,
                [](const Program& program) { return !program.name.starts_with("evaluate"); });
  programs.programs.insert(programs.programs.begin(), std::move(step));
}

}  // namespace skein
