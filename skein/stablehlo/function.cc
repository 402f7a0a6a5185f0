#include "skein/stablehlo/function.h"

#include <bit>
#include <cmath>

#include "skein/base/error.h"

namespace skein::stablehlo {
namespace {

constexpr std::string_view kChannel =
    "channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>";

// The bits of a number that has no decimal form, in the width of its element.
std::string bits_text(Element element, double value) {
  switch (element) {
    case Element::kF64:
      return fmt::format("0x{:016X}", std::bit_cast<uint64_t>(value));
    case Element::kBF16:
      return fmt::format("0x{:04X}", bfloat16(static_cast<float>(value)).bits);
    default:
      return fmt::format("0x{:08X}", std::bit_cast<uint32_t>(static_cast<float>(value)));
  }
}

std::string number_text(Element element, double value) {
  if (element == Element::kI1) return value != 0 ? "true" : "false";
  if (!is_float(element)) return fmt::format("{}", static_cast<int64_t>(value));
  if (!std::isfinite(value)) return bits_text(element, value);
  return element == Element::kF64 ? fmt::format("{:.17e}", value) : fmt::format("{:.9e}", value);
}

std::string groups_text(const ReplicaGroups& groups) {
  std::string rows;
  for (const std::vector<int64_t>& group : groups) {
    rows += fmt::format("{}[{}]", rows.empty() ? "" : ", ", fmt::join(group, ", "));
  }
  return fmt::format("replica_groups = dense<[{}]> : tensor<{}x{}xi64>", rows, groups.size(),
                     groups.front().size());
}

std::string types_text(const std::vector<Tensor>& tensors) {
  std::string text;
  for (const Tensor& tensor : tensors) {
    if (!text.empty()) text += ", ";
    text += tensor.type().to_string();
  }
  return text;
}

std::string types_text(const std::vector<Type>& types) {
  std::string text;
  for (const Type& type : types) {
    if (!text.empty()) text += ", ";
    text += type.to_string();
  }
  return text;
}

std::string names_text(const std::vector<Tensor>& tensors) {
  std::string text;
  for (const Tensor& tensor : tensors) {
    if (!text.empty()) text += ", ";
    text += tensor.name();
  }
  return text;
}

// The values of an operation with several results.
std::vector<Tensor> results_of(Function* function, const std::string& name,
                               const std::vector<Type>& types) {
  std::vector<Tensor> results;
  for (size_t i = 0; i < types.size(); ++i) {
    results.emplace_back(function, types.size() == 1 ? name : fmt::format("{}#{}", name, i),
                         types[i]);
  }
  return results;
}

}  // namespace

Function::Function(std::string name, const std::vector<Type>& arguments, bool is_narrow)
    : name_(std::move(name)), is_narrow_(is_narrow) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    arguments_.emplace_back(this, fmt::format("%arg{}", i), arguments[i]);
  }
}

Tensor Function::append_text(const std::string& text, Type result) {
  const std::string name = fresh();
  body_ += fmt::format("{:{}}{} = {}\n", "", indent_, name, text);
  return {this, name, std::move(result)};
}

Tensor Function::append(std::string_view operation, const std::vector<Tensor>& operands,
                        std::string_view rest, Type result, bool one_type) {
  const std::string signature =
      one_type ? result.to_string()
               : fmt::format("({}) -> {}", types_text(operands), result.to_string());
  return append_text(
      fmt::format("stablehlo.{} {}{} : {}", operation, names_text(operands), rest, signature),
      std::move(result));
}

Tensor Function::constant(Element element, double value, Dims dims) {
  if (is_narrow_) element = narrow(element);
  Type type{element, std::move(dims)};
  return append_text(fmt::format("stablehlo.constant dense<{}> : {}", number_text(element, value),
                                 type.to_string()),
                     type);
}

Tensor Function::word(Element element, uint64_t value, Dims dims) {
  Type type{element, std::move(dims)};
  const bool is_signed = element == Element::kI32 || element == Element::kI64;
  const std::string text =
      is_signed ? fmt::format("{}", static_cast<int64_t>(value)) : fmt::format("{}", value);
  return append_text(fmt::format("stablehlo.constant dense<{}> : {}", text, type.to_string()),
                     type);
}

Tensor Function::words(Element element, const std::vector<int64_t>& values, Dims dims) {
  Type flat{element, {static_cast<int64_t>(values.size())}};
  const Tensor list = append_text(
      fmt::format("stablehlo.constant dense<[{}]> : {}", fmt::join(values, ", "), flat.to_string()),
      flat);
  return reshape(list, std::move(dims));
}

Tensor Function::iota(Element element, Dims dims, int dim) {
  Type type{element, std::move(dims)};
  return append_text(fmt::format("stablehlo.iota dim = {} : {}", dim, type.to_string()), type);
}

std::vector<Tensor> Function::repeat(int64_t turns, const std::vector<Tensor>& carried,
                                     const Turn& turn) {
  std::vector<Tensor> begin = {word(Element::kI32, 0)};
  begin.insert(begin.end(), carried.begin(), carried.end());
  const std::string name = fresh();
  std::vector<Tensor> inside;
  std::vector<Type> types;
  std::string bindings;
  for (const Tensor& tensor : begin) {
    inside.emplace_back(this, fresh(), tensor.type());
    types.push_back(tensor.type());
    bindings +=
        fmt::format("{}{} = {}", bindings.empty() ? "" : ", ", inside.back().name(), tensor.name());
  }
  body_ += fmt::format("{:{}}{}:{} = stablehlo.while({}) : {} cond {{\n", "", indent_, name,
                       begin.size(), bindings, types_text(types));
  indent_ += 2;
  const Tensor goes_on =
      compare(inside[0], Compare::kLess, word(Element::kI32, static_cast<uint64_t>(turns)));
  body_ += fmt::format("{:{}}stablehlo.return {} : tensor<i1>\n", "", indent_, goes_on.name());
  body_ += fmt::format("{:{}}}} do {{\n", "", indent_ - 2);
  std::vector<Tensor> next = turn(inside[0], {inside.begin() + 1, inside.end()});
  next.insert(next.begin(), inside[0] + word(Element::kI32, 1));
  for (size_t i = 0; i < next.size(); ++i) {
    if (next[i].type() == types[i]) continue;
    fail(ErrorCode::kInternal, "{}: a loop carries {} on as {}", name_, types[i].to_string(),
         next[i].type().to_string());
  }
  body_ += fmt::format("{:{}}stablehlo.return {} : {}\n", "", indent_, names_text(next),
                       types_text(types));
  indent_ -= 2;
  body_ += fmt::format("{:{}}}}\n", "", indent_);
  std::vector<Tensor> results = results_of(this, name, types);
  results.erase(results.begin());
  return results;
}

Tensor Function::replica_id() {
  return append_text("stablehlo.replica_id : tensor<ui32>", {Element::kU32, {}});
}

Tensor Function::all_gather(const Tensor& a, int dim, const ReplicaGroups& groups) {
  Type result = a.type();
  result.dims.at(dim) *= static_cast<int64_t>(groups.front().size());
  return append_text(
      fmt::format("\"stablehlo.all_gather\"({}) {{all_gather_dim = {} : i64, {}, {}}} : ({}) -> {}",
                  a.name(), dim, kChannel, groups_text(groups), a.type().to_string(),
                  result.to_string()),
      result);
}

Tensor Function::all_to_all(const Tensor& a, int dim, const ReplicaGroups& groups) {
  return append_text(
      fmt::format(
          "\"stablehlo.all_to_all\"({}) {{split_dimension = {} : i64, concat_dimension = {} "
          ": i64, split_count = {} : i64, {}, {}}} : ({}) -> {}",
          a.name(), dim, dim, groups.front().size(), kChannel, groups_text(groups),
          a.type().to_string(), a.type().to_string()),
      a.type());
}

Tensor Function::all_reduce(const Tensor& a, const ReplicaGroups& groups) {
  const std::string one = Type{a.element(), {}}.to_string();
  return append_text(
      fmt::format(
          "\"stablehlo.all_reduce\"({}) ({{ ^bb0(%x: {}, %y: {}): %s = stablehlo.add %x, %y "
          ": {} stablehlo.return %s : {} }}) {{{}, {}}} : ({}) -> {}",
          a.name(), one, one, one, one, kChannel, groups_text(groups), a.type().to_string(),
          a.type().to_string()),
      a.type());
}

std::vector<Tensor> Function::call(const std::string& function,
                                   const std::vector<Tensor>& arguments,
                                   const std::vector<Type>& results) {
  const std::string signature =
      fmt::format("({}) -> ({})", types_text(arguments), types_text(results));
  const std::string text =
      fmt::format("func.call @{}({}) : {}", function, names_text(arguments), signature);
  if (results.empty()) {
    body_ += fmt::format("{:{}}{}\n", "", indent_, text);
    return {};
  }
  const std::string name = fresh();
  const std::string count = results.size() == 1 ? "" : fmt::format(":{}", results.size());
  body_ += fmt::format("{:{}}{}{} = {}\n", "", indent_, name, count, text);
  return results_of(this, name, results);
}

void Function::finish(const std::vector<Tensor>& results) {
  for (const Tensor& tensor : results) results_.push_back(tensor.type());
  if (results.empty()) {
    body_ += fmt::format("{:{}}return\n", "", indent_);
    return;
  }
  body_ +=
      fmt::format("{:{}}return {} : {}\n", "", indent_, names_text(results), types_text(results_));
}

std::string Function::text(bool is_public, const std::vector<std::string>& attributes) const {
  std::string arguments;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const std::string attribute = attributes.empty() ? "" : attributes[i];
    arguments +=
        fmt::format("{}{}: {}{}{}", i == 0 ? "" : ", ", arguments_[i].name(),
                    arguments_[i].type().to_string(), attribute.empty() ? "" : " ", attribute);
  }
  return fmt::format("func.func {} @{}({}) -> ({}) {{\n{}}}\n", is_public ? "public" : "private",
                     name_, arguments, types_text(results_), body_);
}

}  // namespace skein::stablehlo
