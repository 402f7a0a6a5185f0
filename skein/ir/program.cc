#include "skein/ir/program.h"

namespace skein {

std::string_view arena_name(Arena arena) {
  static constexpr std::array<std::string_view, kNumArenas> kNames = {
      "weights",   "gradients",        "optimizer", "inputs", "activations",
      "workspace", "host_activations", "rounded",   "cache"};
  return kNames[static_cast<int>(arena)];
}

const Program& ProgramSet::program(std::string_view name) const {
  for (const Program& program : programs) {
    if (program.name == name) return program;
  }
  fail(ErrorCode::kInternal, "there is no program '{}'", name);
}

const Operand& ProgramSet::operand(std::string_view name) const {
  const auto found = named.find(name);
  if (found == named.end()) fail(ErrorCode::kInternal, "the programs have no value '{}'", name);
  return found->second;
}

const TensorType& ProgramSet::type(std::string_view name) const {
  const auto found = types.find(name);
  if (found == types.end()) fail(ErrorCode::kInternal, "no program has a value named '{}'", name);
  return found->second;
}

std::array<void*, kNumArenas> made_up_bases() {
  std::array<void*, kNumArenas> bases{};
  for (uintptr_t i = 0; i < kNumArenas; ++i) bases[i] = reinterpret_cast<void*>((i + 1) << 48);
  return bases;
}

KernelCall bind_views(const Instruction& instruction, const std::array<void*, kNumArenas>& bases,
                      int64_t slot) {
  const auto view = [&](const Operand& operand) {
    return operand.present() ? operand.view(bases[static_cast<int>(operand.arena)], slot) : View{};
  };
  KernelCall call;
  for (const Operand& operand : instruction.inputs) call.inputs.push_back(view(operand));
  for (const Operand& operand : instruction.outputs) call.outputs.push_back(view(operand));
  call.attrs = instruction.attrs;
  call.scratch = static_cast<char*>(bases[static_cast<int>(Arena::kWorkspace)]) +
                 instruction.scratch_offset_bytes;
  return call;
}

namespace {

std::string to_string(const Operand& operand) {
  if (!operand.present()) return "_";
  std::string text = fmt::format("{}+{} {}{}", arena_name(operand.arena), operand.offset_bytes,
                                 dtype_name(operand.dtype), operand.shape.to_string());
  if (operand.row_stride != operand.shape.cols()) text += fmt::format("/{}", operand.row_stride);
  return text;
}

std::string join(const std::vector<Operand>& operands) {
  std::string text;
  for (const Operand& operand : operands) text += (text.empty() ? "" : ", ") + to_string(operand);
  return text;
}

}  // namespace

std::string to_string(const Program& program) {
  std::string text =
      fmt::format("program {}: {} instructions\n", program.name, program.instructions.size());
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    text += fmt::format("{:5} {} = {}({})", i, join(instruction.outputs), instruction.op->name,
                        join(instruction.inputs));
    if (!instruction.attrs.empty()) text += " " + instruction.attrs.to_string();
    if (instruction.scratch_bytes > 0)
      text += fmt::format(" scratch {}", instruction.scratch_bytes);
    if (instruction.ahead > 0) text += " in the next slot";
    if (!instruction.scope.empty()) text += " @" + instruction.scope;
    text += '\n';
  }
  return text;
}

}  // namespace skein
