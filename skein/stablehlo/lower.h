// A program as the text of one StableHLO module: a call of a function for each instruction. Equal
// instructions share a function, so that the text does not grow with the size of layers.
//
// Cells      What outlives a program lies in cells: the places in arenas that its instructions read
//            before they write them, and those that it writes and somebody reads later. They are
//            the arguments and results of the text. A result in the memory of an argument is
//            donated to it (tf.aliasing_output), so that nothing is copied. Workspace is the
//            compiler's own matter
// Replicas   Several ranks may run one text: their instructions are the same but for what
//            OpDef::localize says
// Errors     kUnsupported: an op without a rule. kInternal: a rule that does not give what its op
//            infers
#pragma once

#include <compare>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "skein/ir/program.h"
#include "skein/stablehlo/rule.h"

namespace skein::stablehlo {

// Where a value lies, for the micro-batch in the program's own slot, or in one ahead of it.
struct Cell {
  Arena arena = Arena::kWorkspace;
  int64_t offset_bytes = 0;
  int64_t slot_bytes = 0;
  int64_t ahead = 0;
  int64_t row_stride = 0;
  Type type;

  static Cell of(const Operand& operand, int64_t ahead);
  bool in_slots() const { return slot_bytes > 0; }
  // From the beginning of the arena.
  int64_t offset_in_slot(int64_t program_slot, int64_t num_slots) const {
    return offset_bytes + (program_slot + ahead) % num_slots * slot_bytes;
  }
  // Whether both are the same place, in whatever slot.
  bool operator<(const Cell& other) const;
  bool operator==(const Cell& other) const { return !(*this < other) && !(other < *this); }
};

using Cells = std::set<Cell>;

// What the instructions, in this order, read before they write it.
Cells cells_read(std::span<const Instruction> instructions);
// What any program of the set reads first, or the host does: what a program must leave behind. With
// `ahead` 0, whichever slot it is read in.
Cells cells_kept(const ProgramSet& programs);

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
  const Cells& kept;
};

Module write_module(const ModuleRequest& request, const RuleTable& rules);

}  // namespace skein::stablehlo
