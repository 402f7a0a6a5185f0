// The programs of a pipeline stage as StableHLO modules: one text for all ranks of the stage, also
// where they are thousands. Messages to other stages part a program into pieces
// (stablehlo/program_pieces.h), of which each is a module.
//
// Errors  Error{kUsage} for a program that there is not
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/compile/step_programs.h"
#include "skein/stablehlo/lower.h"
#include "skein/stablehlo/program_pieces.h"

namespace skein {

struct StageModule {
  std::string name;  // "forward", "forward.from_op_12"
  std::span<const Instruction> instructions;
  stablehlo::Module module;
};

class StageModules {
 public:
  // The stage of the rank of `spec`. `wanted`: the program that for_each will be asked for, or the
  // name of a piece; "": those that a run has, of which "step" may be one (compile/whole_step.h).
  // `is_narrow`: as stablehlo::ModuleRequest has it.
  StageModules(StepSpec spec, std::string wanted, bool is_narrow = false);

  const ProgramSet& programs() const { return programs_; }
  const std::vector<int64_t>& ranks() const { return ranks_; }  // by replica

  // Writes what is wanted. `option` names who asked.
  void for_each(std::string_view option, const std::function<void(const StageModule&)>& act) const;

 private:
  StageModule module_of(const Program& program, const stablehlo::Piece& piece,
                        const stablehlo::Cells& kept,
                        std::vector<stablehlo::LocalizedAttrs>& localized) const;

  StepSpec spec_;
  std::string wanted_;
  TrainingGraphs graphs_;
  ProgramSet programs_;
  std::vector<int64_t> ranks_;
  stablehlo::RuleTable rules_;
  bool is_narrow_;
};

}  // namespace skein
