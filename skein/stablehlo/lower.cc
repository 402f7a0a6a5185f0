#include "skein/stablehlo/lower.h"

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
    for (const auto& others : request_.instructions) require_same(instructions, others);
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
  // All replicas run one text, with arrays in the same places.
  void require_same(std::span<const Instruction> first, std::span<const Instruction> others) const {
    const auto cells = [](const Instruction& instruction) {
      std::vector<Cell> all;
      for (const auto* operands : {&instruction.inputs, &instruction.outputs}) {
        for (const Operand& operand : *operands) all.push_back(Cell::of(operand, 0));
      }
      return all;
    };
    bool is_same = first.size() == others.size();
    for (size_t i = 0; is_same && i < first.size(); ++i) {
      is_same = first[i].op->name == others[i].op->name && cells(first[i]) == cells(others[i]);
    }
    if (is_same) return;
    fail(ErrorCode::kUnsupported,
         "{}: ranks that run one compiled program have shares of different sizes: expected sizes "
         "that the degrees of parallelism divide",
         request_.name);
  }

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
      written_.erase_shared(cell);
      if (request_.kept.holds_part_of(cell)) written_.insert(cell);
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
    const Cells& written = written_.cells();
    for (const Cell& cell : written) {
      module_.results.push_back(cell);
      results.push_back(now_.at(cell));
    }
    main.finish(results);
    std::vector<std::string> attributes;
    for (const Cell& argument : module_.arguments) {
      const auto found = written.find(argument);
      const int result =
          found == written.end() ? -1 : static_cast<int>(std::distance(written.begin(), found));
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
  CellMap written_;
};

}  // namespace

Module write_module(const ModuleRequest& request, const RuleTable& rules) {
  return ModuleWriter(request, rules).run();
}

}  // namespace skein::stablehlo
