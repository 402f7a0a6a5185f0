#include "skein/stablehlo/lower.h"

#include <memory>

#include "skein/base/error.h"
#include "skein/stablehlo/narrow.h"

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
    for (const Cell& cell : module_.arguments) types.push_back(outer(cell.type));
    Function main("main", types, request_.is_narrow);
    for (size_t i = 0; i < module_.arguments.size(); ++i) {
      const Cell& cell = module_.arguments[i];
      const Tensor& argument = main.arguments()[i];
      now_[cell] =
          argument.type() == cell.type ? argument : from_f64_bits(argument, cell.type.dims);
    }
    for (size_t i = 0; i < instructions.size(); ++i) add(main, i);
    finish(main);
    for (auto* cells : {&module_.arguments, &module_.results}) {
      for (Cell& cell : *cells) {
        const Type type = outer(cell.type);
        cell.row_stride *= bytes_of(cell.type.element) / bytes_of(type.element);
        cell.type = type;
      }
    }
    return std::move(module_);
  }

 private:
  // In the signature of the module.
  Type outer(const Type& type) const { return request_.is_narrow ? outer_type(type) : type; }
  // In its functions.
  Type inner(Type type) const {
    if (request_.is_narrow) type.element = narrow(type.element);
    return type;
  }

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

  const Rule& rule_of(const Instruction& instruction) const {
    const auto rule = rules_.find(instruction.op->name);
    if (rule == rules_.end()) {
      fail(ErrorCode::kUnsupported, "[{}] ({}) has no StableHLO rule", instruction.op->name,
           instruction.scope);
    }
    return rule->second;
  }

  // The constants of an instruction, of all replicas.
  const ReplicaAttrs& attrs_of(size_t index, const Rule& rule) {
    if (request_.localized != nullptr) {
      return request_.localized->of(request_.instructions.front()[index], rule.arguments);
    }
    std::vector<Attrs> attrs;
    for (const auto& instructions : request_.instructions) {
      attrs.push_back(instructions[index].attrs.without(rule.arguments));
    }
    given_ = std::make_unique<ReplicaAttrs>(std::move(attrs));
    return *given_;
  }

  // The attrs that the call of a function passes to it.
  std::vector<Tensor> arguments_of(Function& main, const Instruction& instruction,
                                   const Rule& rule) {
    std::vector<Tensor> arguments;
    for (const std::string_view name : rule.arguments) {
      const auto word = static_cast<uint32_t>(instruction.attrs.integer(name));
      const auto [known, is_new] = words_.try_emplace(word);
      if (is_new) known->second = main.word(Element::kU32, word);
      arguments.push_back(known->second);
    }
    return arguments;
  }

  void add(Function& main, size_t index) {
    const Instruction& instruction = request_.instructions.front()[index];
    const Rule& rule = rule_of(instruction);
    std::vector<Tensor> inputs;
    for (const Operand& operand : instruction.inputs) {
      inputs.push_back(operand.present() ? now_.at(Cell::of(operand, instruction.ahead))
                                         : Tensor());
    }
    std::vector<Type> outputs;
    for (const Operand& operand : instruction.outputs) outputs.push_back(inner(type_of(operand)));
    const std::string& function = function_for(instruction, rule, index, inputs, outputs);
    std::vector<Tensor> passed = arguments_of(main, instruction, rule);
    for (const Tensor& input : inputs) {
      if (input.present()) passed.push_back(input);
    }
    const std::vector<Tensor> results = main.call(function, passed, outputs);
    for (size_t i = 0; i < results.size(); ++i) {
      const Cell cell = Cell::of(instruction.outputs[i], instruction.ahead);
      now_[cell] = results[i];
      written_.erase_shared(cell);
      if (request_.kept.holds_part_of(cell)) written_.insert(cell);
    }
  }

  const std::string& function_for(const Instruction& instruction, const Rule& rule, size_t index,
                                  const std::vector<Tensor>& inputs,
                                  const std::vector<Type>& outputs) {
    const ReplicaAttrs& attrs = attrs_of(index, rule);
    std::string key = fmt::format("{} {} ", instruction.op->name, attrs.key());
    std::vector<Type> types(rule.arguments.size(), Type{Element::kU32, {}});
    for (const Tensor& input : inputs) {
      key += input.present() ? input.type().to_string() : "_";
      if (input.present()) types.push_back(input.type());
    }
    key += " -> " + signature(outputs);
    std::string& name = functions_[key];
    if (!name.empty()) return name;
    name = fmt::format("{}_{}", instruction.op->name, functions_.size());
    Function function(name, types, request_.is_narrow);
    write(function, rule, attrs, inputs, outputs);
    text_ += function.text(/*is_public=*/false);
    return name;
  }

  void write(Function& function, const Rule& rule, const ReplicaAttrs& attrs,
             const std::vector<Tensor>& inputs, const std::vector<Type>& outputs) const {
    RuleCall call{function, request_.mesh, request_.ranks, attrs.pointers(), {}, outputs};
    size_t next = 0;
    for (const std::string_view name : rule.arguments) {
      call.arguments[name] = function.arguments()[next++];
    }
    for (const Tensor& input : inputs) {
      call.inputs.push_back(input.present() ? function.arguments()[next++] : Tensor());
    }
    const std::vector<Tensor> results = rule.write(call);
    std::vector<Type> types;
    for (const Tensor& result : results) types.push_back(result.type());
    if (types != outputs) {
      fail(ErrorCode::kInternal, "the StableHLO rule of {} {} gives {}, expected {}",
           function.name(), call.constants().to_string(), signature(types), signature(outputs));
    }
    function.finish(results);
  }

  void finish(Function& main) {
    std::vector<Tensor> results;
    const Cells& written = written_.cells();
    for (const Cell& cell : written) {
      module_.results.push_back(cell);
      const Tensor& value = now_.at(cell);
      results.push_back(value.type() == cell.type ? value : to_f64_bits(value));
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
        request_.name, request_.ranks.size(), text_, main.text(/*is_public=*/true, attributes));
  }

  const ModuleRequest& request_;
  const RuleTable& rules_;
  Module module_;
  std::map<std::string, std::string> functions_;  // names by what they compute
  std::string text_;
  std::map<uint32_t, Tensor> words_;  // of arguments that calls pass
  std::unique_ptr<ReplicaAttrs> given_;
  std::map<Cell, Tensor> now_;  // the value in each place, as far as the program has got
  CellMap written_;
};

}  // namespace

Module write_module(const ModuleRequest& request, const RuleTable& rules) {
  return ModuleWriter(request, rules).run();
}

}  // namespace skein::stablehlo
