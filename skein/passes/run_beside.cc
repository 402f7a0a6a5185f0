#include "skein/passes/run_beside.h"

#include "skein/passes/memory_map.h"

namespace skein {
namespace {

using Rects = std::vector<ByteRect>;

Rects rects_of(const std::vector<Operand>& operands) {
  Rects rects;
  for (const Operand& operand : operands) {
    if (operand.present()) rects.push_back(ByteRect::of(operand, 0));
  }
  return rects;
}

bool may_overlap(const Rects& some, const Rects& others) {
  for (const ByteRect& one : some) {
    for (const ByteRect& other : others) {
      if (skein::may_overlap(one, other)) return true;
    }
  }
  return false;
}

struct UnderWay {
  int index;
  Rects reads, writes;
};

}  // namespace

void run_beside(Program& program, const KernelTable& kernels) {
  std::vector<UnderWay> under_way;  // in order
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    Instruction& instruction = program.instructions[i];
    UnderWay mine{static_cast<int>(i), rects_of(instruction.inputs), rects_of(instruction.outputs)};
    const auto kernel = kernels.find(instruction.op->name);
    instruction.beside = kernel != kernels.end() && kernel->second.runs_beside;
    if (instruction.beside) {  // in order with the others of its queue
      under_way.push_back(std::move(mine));
      continue;
    }
    for (const UnderWay& other : under_way) {
      if (may_overlap(other.writes, mine.reads) || may_overlap(other.writes, mine.writes) ||
          may_overlap(other.reads, mine.writes)) {
        instruction.waits_for = other.index;
      }
    }
    std::erase_if(under_way,
                  [&](const UnderWay& other) { return other.index <= instruction.waits_for; });
  }
}

}  // namespace skein
