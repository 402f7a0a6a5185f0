// A program as the text of one StableHLO module: a call of a function for each instruction. Equal
// instructions share a function, so that the text does not grow with the size of layers.
//
// Cells      (cells.h) are the arguments and results of the text. A result in the memory of an
//            argument is donated to it (tf.aliasing_output), so that nothing is copied. Workspace
//            is the compiler's own matter
// Replicas   Several ranks may run one text: their instructions are the same but for what
//            OpDef::localize says
// Errors     kUnsupported: an op without a rule; replicas whose instructions differ. kInternal: a
//            rule that does not give what its op infers
#pragma once

#include <span>
#include <string>
#include <vector>

#include "skein/stablehlo/cells.h"
#include "skein/stablehlo/replica_attrs.h"
#include "skein/stablehlo/rule.h"

namespace skein::stablehlo {

struct Module {
  std::string text;
  std::vector<Cell> arguments, results;
  std::vector<int> donated;  // by argument: the result that takes its memory; -1: none
};

struct ModuleRequest {
  std::string name;
  const Mesh& mesh;
  std::vector<int64_t> ranks;                              // of the mesh, by replica
  std::vector<std::span<const Instruction>> instructions;  // by replica
  const CellMap& kept;
  // Null: as `instructions` have them. Otherwise those of the first replica are enough there, and
  // the attrs of all are asked for here.
  LocalizedAttrs* localized = nullptr;
  // For hardware without numbers of 64 bits (function.h). Arrays of f64 keep their bytes: the text
  // takes and returns them as ui32, two for each number, and rounds them to f32.
  bool is_narrow = false;
};

Module write_module(const ModuleRequest& request, const RuleTable& rules);

}  // namespace skein::stablehlo
