#include "skein/stablehlo/neuron_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace skein::stablehlo {
namespace {

struct Row {
  std::string_view name, reason;
};

constexpr std::array kElements = {
    Row{"f64", "the hardware has no 64-bit floats, and would compute it in f32"},
    Row{"i64", "64-bit integers run as 32-bit ones (--native-int64)"},
    Row{"ui64", "64-bit integers run as 32-bit ones (--native-int64, NCC_ESFH002)"},
    Row{"f8E4M3FN", "F8E4M3FN is not supported on trn1 and trn2 (NCC_EVRF051)"},
    Row{"f8E4M3FNUZ", "this kind of fp8 is not supported (NCC_EVRF005)"},
    Row{"f8E4M3B11FNUZ", "this kind of fp8 is not supported (NCC_EVRF005)"},
    Row{"f8E5M2FNUZ", "this kind of fp8 is not supported (NCC_EVRF005)"},
    Row{"f4E2M1FN", "there is no code for fp4 (NCC_ESPP004)"},
    Row{"complex<f32>", "complex numbers are not supported (NCC_EVRF004)"},
    Row{"complex<f64>", "complex numbers are not supported (NCC_EVRF004)"},
};

constexpr std::array kOperations = {
    Row{"sort", "sorts are not supported (NCC_EVRF029)"},
    Row{"rng", "a generator of its own is not reproducible"},
    Row{"rng_bit_generator", "it knows one algorithm, its own (NCC_EVRF006)"},
    Row{"reduce_precision", "it is not supported"},
    Row{"case", "branches are not supported"},
    Row{"if", "branches are not supported"},
    Row{"triangular_solve", "it is not supported (NCC_EUOC002)"},
    Row{"cholesky", "it is not supported (NCC_EUOC002)"},
    Row{"fft", "it is not supported (NCC_EUOC002)"},
    Row{"infeed", "calls of the host are not supported"},
    Row{"outfeed", "calls of the host are not supported"},
    Row{"send", "calls of the host are not supported"},
    Row{"recv", "calls of the host are not supported"},
    Row{"set_dimension_size", "dynamic shapes are not supported (NCC_EMOD025)"},
    Row{"get_dimension_size", "dynamic shapes are not supported (NCC_EMOD025)"},
    Row{"real_dynamic_slice", "dynamic shapes are not supported (NCC_EMOD025)"},
    Row{"dynamic_pad", "dynamic shapes are not supported (NCC_EMOD025)"},
    Row{"dynamic_reshape", "dynamic shapes are not supported (NCC_EMOD025)"},
    Row{"dynamic_iota", "dynamic shapes are not supported (NCC_EMOD025)"},
    Row{"dynamic_gather", "dynamic shapes are not supported (NCC_EMOD025)"},
    Row{"dynamic_broadcast_in_dim", "dynamic shapes are not supported (NCC_EMOD025)"},
};

// Of integers these compute in fp32, which loses what is above 2^24.
constexpr std::array kFloatOperations = {
    Row{"dot_general", "products compute in floats, of integers too (NCC_EVRF035)"},
    Row{"all_reduce", "sums over ranks compute in floats, of integers too (NCC_EVRF061)"},
    Row{"reduce_scatter", "sums over ranks compute in floats, of integers too (NCC_EVRF063)"},
    Row{"scatter", "sums at indices compute in floats, of integers too (NCC_EVRF016)"},
};

template <size_t size>
const Row* find(const std::array<Row, size>& rows, std::string_view name) {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [name](const Row& one) { return one.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string_view name_at(std::string_view line, size_t at) {
  size_t end = at;
  while (end < line.size() && is_name(line[end])) ++end;
  return line.substr(at, end - at);
}

// "add" of the first "stablehlo.add" of the line; "": none.
std::string_view operation_of(std::string_view line) {
  constexpr std::string_view kDialect = "stablehlo.";
  const size_t at = line.find(kDialect);
  return at == line.npos ? std::string_view() : name_at(line, at + kDialect.size());
}

// What stands in the "tensor<…>" of a line, but for those that list replica groups.
std::vector<std::string_view> types_of(std::string_view line) {
  constexpr std::string_view kTensor = "tensor<", kGroups = "replica_groups = dense<";
  const size_t groups = line.find(kGroups);
  const size_t groups_type = groups == line.npos ? groups : line.find(kTensor, groups);
  std::vector<std::string_view> types;
  for (size_t at = line.find(kTensor); at != line.npos; at = line.find(kTensor, at + 1)) {
    if (at == groups_type) continue;
    const size_t begin = at + kTensor.size();
    size_t end = begin;
    for (int depth = 1; end < line.size(); ++end) {
      depth += line[end] == '<' ? 1 : line[end] == '>' ? -1 : 0;
      if (depth == 0) break;
    }
    types.push_back(line.substr(begin, end - begin));
  }
  return types;
}

// "f32" of "4x8xf32".
std::string_view element_of_type(std::string_view type) {
  return type.substr(std::min(type.size(), type.find_first_not_of("0123456789x?")));
}

bool is_wide_integer(std::string_view element) {
  return element == "i32" || element == "ui32" || element == "i64" || element == "ui64";
}

class Check {
 public:
  std::vector<NeuronLack> run(std::string_view text) {
    for (line_ = 1; !text.empty(); ++line_) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      look_at(line);
    }
    return std::move(lacks_);
  }

 private:
  void look_at(std::string_view line) {
    constexpr std::string_view kFunction = "func.func ";
    const std::string_view operation = operation_of(line);
    const bool begins_function = line.find(kFunction) != line.npos;
    if (begins_function) function_ = name_at(line, line.find('@') + 1);
    what_ = begins_function     ? "an argument"
            : operation.empty() ? "func.call"
                                : fmt::format("stablehlo.{}", operation);
    const std::vector<std::string_view> types = types_of(line);
    for (const std::string_view type : types) {
      if (type.find('?') != type.npos) report("dynamic shapes are not supported (NCC_EMOD025)");
      if (const Row* row = find(kElements, element_of_type(type))) report(row->reason);
    }
    if (line.find("} do {") != line.npos) in_condition_ = false;
    if (operation.empty()) return;
    if (const Row* row = find(kOperations, operation)) report(row->reason);
    const Row* of_floats = find(kFloatOperations, operation);
    const bool has_integers = !types.empty() && is_wide_integer(element_of_type(types.front()));
    if (of_floats != nullptr && has_integers) report(of_floats->reason);
    if (operation == "custom_call" && line.find("@AwsNeuron") == line.npos) {
      report("no compiler for Trainium knows the callee (NCC_EVRF015)");
    }
    look_at_loop(operation);
  }

  // The condition of a loop compares a counter with a constant, and does nothing else.
  void look_at_loop(std::string_view operation) {
    if (operation == "while") {
      in_condition_ = true;
      limit_is_constant_ = false;
      return;
    }
    if (!in_condition_) return;
    if (operation == "constant") limit_is_constant_ = true;
    const bool compares = operation == "compare" && limit_is_constant_;
    if (operation == "constant" || compares || operation == "return") return;
    report("the number of a loop's turns must be a constant");
  }

  void report(std::string_view reason) {
    const auto known = std::find_if(lacks_.begin(), lacks_.end(), [&](const NeuronLack& one) {
      return one.function == function_ && one.operation == what_ && one.reason == reason;
    });
    if (known != lacks_.end()) {
      ++known->count;
      return;
    }
    lacks_.push_back({std::string(function_), what_, std::string(reason), line_, 1});
  }

  std::vector<NeuronLack> lacks_;
  std::string_view function_;
  std::string what_;
  int64_t line_ = 0;
  bool in_condition_ = false, limit_is_constant_ = false;
};

}  // namespace

std::vector<NeuronLack> what_neuron_lacks(std::string_view text) { return Check().run(text); }

std::string to_string(const NeuronLack& lack) {
  return fmt::format("{}, line {}: {}: {}{}", lack.function, lack.line, lack.operation, lack.reason,
                     lack.count == 1 ? "" : fmt::format(" ({} times)", lack.count));
}

}  // namespace skein::stablehlo
