#include "skein/runtime/op_range.h"

#include <fmt/format.h>

namespace skein {

std::string describe(const Instruction& instruction) {
  std::string text = fmt::format("[{}]", instruction.op->name);
  for (const Operand& operand : instruction.inputs) {
    if (operand.present()) {
      text += fmt::format(" {}{}", dtype_name(operand.dtype), operand.shape.to_string());
    }
  }
  return instruction.scope.empty() ? text : text + " (" + instruction.scope + ")";
}

std::string describe_ops(const Program& program, size_t first, size_t last) {
  return fmt::format("in ops {} to {} of program '{}', {} to {}", first, last, program.name,
                     describe(program.instructions[first]), describe(program.instructions[last]));
}

}  // namespace skein
