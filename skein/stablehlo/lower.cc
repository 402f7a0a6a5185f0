#include "skein/stablehlo/lower.h"

#include <tuple>

#include "skein/base/error.h"

namespace skein::stablehlo {
namespace {

Type type_of(const Operand& operand) { return {element_of(operand.dtype), operand.shape.dims()}; }

std::string signature(const std::vector<Type>& types) {
  std::string text;
  for (const Type& type : types) text += type.to_string() + " ";
  return text;
}

class ModuleWriter {
 public:
  ModuleWriter(const ModuleRequest& request, const RuleTable& rules)
      : request_(request), rules_(rules) {}

  Module run() {
    const std::span<const Instruction> instructions = request_.instructions.front();
    const Cells read = cells_read(instructions);
    module_.arguments.assign(read.begin(), read.end());
    std::vector<Type> types;
    for (const Cell& cell : module_.arguments) types.push_back(cell.type);
    Function main("main", types);
    for (size_t i = 0; i < module_.arguments.size(); ++i) {
      now_[module_.arguments[i]] = main.arguments()[i];
    }
    for (size_t i = 0; i < instructions.size(); ++i) add(main, i);
    finish(main);
    return std::move(module_);
  }

 private:
  // The attrs of an instruction, of all replicas.
  std::vector<const Attrs*> attrs_of(size_t index) const {
    std::vector<const Attrs*> attrs;
    for (const auto& instructions : request_.instructions) {
      attrs.push_back(&instructions[index].attrs);
    }
    return attrs;
  }

  void add(Function& main, size_t index) {
    const Instruction& instruction = request_.instructions.front()[index];
    std::vector<Tensor> inputs;
    for (const Operand& operand : instruction.inputs) {
      inputs.push_back(operand.present() ? now_.at(Cell::of(operand, instruction.ahead))
                                         : Tensor());
    }
    std::vector<Type> outputs;
    for (const Operand& operand : instruction.outputs) outputs.push_back(type_of(operand));
    const std::string& function = function_for(instruction, index, inputs, outputs);
    std::vector<Tensor> present;
    for (const Tensor& input : inputs) {
      if (input.present()) present.push_back(input);
    }
    const std::vector<Tensor> results = main.call(function, present, outputs);
    for (size_t i = 0; i < results.size(); ++i) {
      const Cell cell = Cell::of(instruction.outputs[i], instruction.ahead);
      now_[cell] = results[i];
      Cell in_any_slot = cell;
      in_any_slot.ahead = 0;
      if (request_.kept.contains(in_any_slot)) written_.insert(cell);
    }
  }

  const std::string& function_for(const Instruction& instruction, size_t index,
                                  const std::vector<Tensor>& inputs,
                                  const std::vector<Type>& outputs) {
    const std::vector<const Attrs*> attrs = attrs_of(index);
    std::string key = std::string(instruction.op->name);
    for (const Attrs* one : attrs) {
      if (one == attrs.front() || !(*one == *attrs.front())) key += one->to_string();
      key += ";";
    }
    std::vector<Type> types;
    for (const Tensor& input : inputs) {
      key += input.present() ? input.type().to_string() : "_";
      if (input.present()) types.push_back(input.type());
    }
    key += " -> " + signature(outputs);
    std::string& name = functions_[key];
    if (!name.empty()) return name;
    name = fmt::format("{}_{}", instruction.op->name, functions_.size());
    Function function(name, types);
    write(function, instruction, attrs, inputs, outputs);
    text_ += function.text(/*is_public=*/false);
    return name;
  }

  void write(Function& function, const Instruction& instruction,
             const std::vector<const Attrs*>& attrs, const std::vector<Tensor>& inputs,
             const std::vector<Type>& outputs) const {
    const auto rule = rules_.find(instruction.op->name);
    if (rule == rules_.end()) {
      fail(ErrorCode::kUnsupported, "[{}] ({}) has no StableHLO rule", instruction.op->name,
           instruction.scope);
    }
    RuleCall call{function, request_.mesh, request_.ranks, attrs, {}, outputs};
    size_t next = 0;
    for (const Tensor& input : inputs) {
      call.inputs.push_back(input.present() ? function.arguments()[next++] : Tensor());
    }
    const std::vector<Tensor> results = rule->second(call);
    std::vector<Type> types;
    for (const Tensor& result : results) types.push_back(result.type());
    if (types != outputs) {
      fail(ErrorCode::kInternal, "the StableHLO rule of [{}] {} gives {}, expected {}",
           instruction.op->name, attrs.front()->to_string(), signature(types), signature(outputs));
    }
    function.finish(results);
  }

  void finish(Function& main) {
    std::vector<Tensor> results;
    for (const Cell& cell : written_) {
      module_.results.push_back(cell);
      results.push_back(now_.at(cell));
    }
    main.finish(results);
    std::vector<std::string> attributes;
    for (const Cell& argument : module_.arguments) {
      const auto found = written_.find(argument);
      const int result =
          found == written_.end() ? -1 : static_cast<int>(std::distance(written_.begin(), found));
      module_.donated.push_back(result);
      attributes.push_back(result < 0 ? ""
                                      : fmt::format("{{tf.aliasing_output = {} : i32}}", result));
    }
    module_.text = fmt::format(
        "module @{} attributes {{mhlo.num_replicas = {} : i32, "
        "mhlo.num_partitions = 1 : i32}} {{\n{}{}}}\n",
        request_.name, request_.instructions.size(), text_,
        main.text(/*is_public=*/true, attributes));
  }

  const ModuleRequest& request_;
  const RuleTable& rules_;
  Module module_;
  std::map<std::string, std::string> functions_;  // names by what they compute
  std::string text_;
  std::map<Cell, Tensor> now_;  // the value in each place, as far as the program has got
  Cells written_;
};

}  // namespace

Cell Cell::of(const Operand& operand, int64_t ahead) {
  return {operand.arena,      operand.offset_bytes,
          operand.slot_bytes, operand.slot_bytes > 0 ? ahead : 0,
          operand.row_stride, type_of(operand)};
}

bool Cell::operator<(const Cell& other) const {
  const auto key = [](const Cell& cell) {
    return std::tie(cell.arena, cell.offset_bytes, cell.ahead, cell.row_stride, cell.type.element,
                    cell.type.dims);
  };
  return key(*this) < key(other);
}

Cells cells_read(std::span<const Instruction> instructions) {
  Cells read, written;
  for (const Instruction& instruction : instructions) {
    for (const Operand& operand : instruction.inputs) {
      if (!operand.present()) continue;
      const Cell cell = Cell::of(operand, instruction.ahead);
      if (!written.contains(cell)) read.insert(cell);
    }
    for (const Operand& operand : instruction.outputs) {
      written.insert(Cell::of(operand, instruction.ahead));
    }
  }
  return read;
}

Cells cells_kept(const ProgramSet& programs) {
  Cells kept;
  for (const Program& program : programs.programs) {
    for (Cell cell : cells_read(program.instructions)) {
      cell.ahead = 0;
      kept.insert(cell);
    }
  }
  for (const auto& [name, operand] : programs.named) kept.insert(Cell::of(operand, 0));
  return kept;
}

Module write_module(const ModuleRequest& request, const RuleTable& rules) {
  return ModuleWriter(request, rules).run();
}

}  // namespace skein::stablehlo
