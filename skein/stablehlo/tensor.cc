#include "skein/stablehlo/tensor.h"

#include <limits>
#include <numeric>

#include "skein/base/error.h"
#include "skein/stablehlo/function.h"

namespace skein::stablehlo {
namespace {

[[noreturn]] void fail_types(std::string_view operation, const Tensor& a, const Tensor& b) {
  fail(ErrorCode::kInternal, "{}: {} of {} and {}", a.function().name(), operation,
       a.type().to_string(), b.type().to_string());
}

// A scalar in the shape of the other operand.
Tensor like(const Tensor& a, const Dims& dims) {
  return a.rank() == 0 && !dims.empty() ? broadcast(a, dims, {}) : a;
}

Tensor binary(std::string_view operation, const Tensor& a, const Tensor& b) {
  const Tensor x = like(a, b.dims()), y = like(b, a.dims());
  if (!(x.type() == y.type())) fail_types(operation, a, b);
  return x.function().append(operation, {x, y}, "", x.type(), /*one_type=*/true);
}

Tensor unary(std::string_view operation, const Tensor& a) {
  return a.function().append(operation, {a}, "", a.type(), /*one_type=*/true);
}

Tensor number(const Tensor& like_this, double value) {
  return like_this.function().constant(like_this.element(), value);
}

std::string_view compare_word(Compare how) {
  switch (how) {
    case Compare::kEqual:
      return "EQ";
    case Compare::kNotEqual:
      return "NE";
    case Compare::kLess:
      return "LT";
    case Compare::kLessEqual:
      return "LE";
    case Compare::kGreater:
      return "GT";
    case Compare::kGreaterEqual:
      return "GE";
  }
  return "";
}

Tensor reduce(std::string_view operation, const Tensor& a, const Dims& over, double start) {
  Type result{a.element(), {}};
  for (int dim = 0; dim < a.rank(); ++dim) {
    if (std::find(over.begin(), over.end(), dim) == over.end()) result.dims.push_back(a.dim(dim));
  }
  const Tensor begin = number(a, start);
  return a.function().append_text(
      fmt::format("stablehlo.reduce({} init: {}) applies stablehlo.{} across dimensions = [{}] : "
                  "({}, {}) -> {}",
                  a.name(), begin.name(), operation, fmt::join(over, ", "), a.type().to_string(),
                  begin.type().to_string(), result.to_string()),
      result);
}

std::string dims_text(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

// Every index is one of `a`.
Tensor add_rows_at_any(const Tensor& a, const Tensor& index, const Tensor& updates) {
  const std::string one = Type{a.element(), {}}.to_string();
  Dims windows;
  for (int dim = 1; dim < a.rank(); ++dim) windows.push_back(dim);
  return a.function().append_text(
      fmt::format(
          "\"stablehlo.scatter\"({}, {}, {}) ({{ ^bb0(%x: {}, %y: {}): %s = stablehlo.add %x, %y : "
          "{} stablehlo.return %s : {} }}) {{scatter_dimension_numbers = "
          "#stablehlo.scatter<update_window_dims = {}, inserted_window_dims = [0], "
          "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, "
          "unique_indices = false}} : ({}, {}, {}) -> {}",
          a.name(), index.name(), updates.name(), one, one, one, one, dims_text(windows),
          a.type().to_string(), index.type().to_string(), updates.type().to_string(),
          a.type().to_string()),
      a.type());
}

Tensor clamped(const Tensor& index, int64_t rows) {
  return minimum(maximum(index, 0), static_cast<double>(rows - 1));
}

}  // namespace

Element element_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return Element::kF32;
    case DType::kBF16:
      return Element::kBF16;
    case DType::kI32:
      return Element::kI32;
    case DType::kF64:
      return Element::kF64;
  }
  return Element::kF32;
}

std::string_view element_name(Element element) {
  switch (element) {
    case Element::kI1:
      return "i1";
    case Element::kU8:
      return "ui8";
    case Element::kU16:
      return "ui16";
    case Element::kI32:
      return "i32";
    case Element::kU32:
      return "ui32";
    case Element::kI64:
      return "i64";
    case Element::kU64:
      return "ui64";
    case Element::kF8E4M3:
      return "f8E4M3FN";
    case Element::kF8E5M2:
      return "f8E5M2";
    case Element::kBF16:
      return "bf16";
    case Element::kF32:
      return "f32";
    case Element::kF64:
      return "f64";
  }
  return "";
}

bool is_float(Element element) { return element >= Element::kF8E4M3; }

Element narrow(Element element) { return element == Element::kF64 ? Element::kF32 : element; }

int64_t bytes_of(Element element) {
  switch (element) {
    case Element::kI1:
    case Element::kU8:
    case Element::kF8E4M3:
    case Element::kF8E5M2:
      return 1;
    case Element::kU16:
    case Element::kBF16:
      return 2;
    case Element::kI32:
    case Element::kU32:
    case Element::kF32:
      return 4;
    case Element::kI64:
    case Element::kU64:
    case Element::kF64:
      return 8;
  }
  return 0;
}

int64_t Type::num_elements() const {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

std::string Type::to_string() const {
  std::string text = "tensor<";
  for (const int64_t dim : dims) text += fmt::format("{}x", dim);
  return text + std::string(element_name(element)) + ">";
}

Tensor operator+(const Tensor& a, const Tensor& b) { return binary("add", a, b); }
Tensor operator-(const Tensor& a, const Tensor& b) { return binary("subtract", a, b); }
Tensor operator*(const Tensor& a, const Tensor& b) { return binary("multiply", a, b); }
Tensor operator/(const Tensor& a, const Tensor& b) { return binary("divide", a, b); }
Tensor operator%(const Tensor& a, const Tensor& b) { return binary("remainder", a, b); }
Tensor operator-(const Tensor& a) { return unary("negate", a); }
Tensor operator&(const Tensor& a, const Tensor& b) { return binary("and", a, b); }
Tensor operator|(const Tensor& a, const Tensor& b) { return binary("or", a, b); }
Tensor operator^(const Tensor& a, const Tensor& b) { return binary("xor", a, b); }
Tensor operator~(const Tensor& a) { return unary("not", a); }
Tensor operator<<(const Tensor& a, int bits) { return binary("shift_left", a, number(a, bits)); }
Tensor operator>>(const Tensor& a, int bits) {
  return binary("shift_right_logical", a, number(a, bits));
}
Tensor operator+(const Tensor& a, double b) { return a + number(a, b); }
Tensor operator-(const Tensor& a, double b) { return a - number(a, b); }
Tensor operator*(const Tensor& a, double b) { return a * number(a, b); }
Tensor operator/(const Tensor& a, double b) { return a / number(a, b); }
Tensor operator+(double a, const Tensor& b) { return number(b, a) + b; }
Tensor operator-(double a, const Tensor& b) { return number(b, a) - b; }
Tensor operator*(double a, const Tensor& b) { return number(b, a) * b; }
Tensor operator/(double a, const Tensor& b) { return number(b, a) / b; }

Tensor compare(const Tensor& a, Compare how, const Tensor& b) {
  const Tensor x = like(a, b.dims()), y = like(b, a.dims());
  if (!(x.type() == y.type())) fail_types("compare", a, b);
  const Type result{Element::kI1, x.dims()};
  return x.function().append_text(
      fmt::format("stablehlo.compare {}, {}, {} : ({}, {}) -> {}", compare_word(how), x.name(),
                  y.name(), x.type().to_string(), y.type().to_string(), result.to_string()),
      result);
}
Tensor compare(const Tensor& a, Compare how, double b) { return compare(a, how, number(a, b)); }

Tensor select(const Tensor& condition, const Tensor& then, const Tensor& otherwise) {
  const Tensor x = like(then, condition.dims()), y = like(otherwise, condition.dims());
  const Tensor chosen = like(condition, x.dims());
  if (!(x.type() == y.type()) || chosen.dims() != x.dims()) {
    fail_types("select", then, otherwise);
  }
  return x.function().append_text(
      fmt::format("stablehlo.select {}, {}, {} : {}, {}", chosen.name(), x.name(), y.name(),
                  chosen.type().to_string(), x.type().to_string()),
      x.type());
}

Tensor maximum(const Tensor& a, const Tensor& b) { return binary("maximum", a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return binary("minimum", a, b); }
Tensor maximum(const Tensor& a, double b) { return maximum(a, number(a, b)); }
Tensor minimum(const Tensor& a, double b) { return minimum(a, number(a, b)); }
Tensor power(const Tensor& a, const Tensor& b) { return binary("power", a, b); }
Tensor abs(const Tensor& a) { return unary("abs", a); }
Tensor exp(const Tensor& a) { return unary("exponential", a); }
Tensor log(const Tensor& a) { return unary("log", a); }
Tensor sqrt(const Tensor& a) { return unary("sqrt", a); }
Tensor rsqrt(const Tensor& a) { return unary("rsqrt", a); }
Tensor logistic(const Tensor& a) { return unary("logistic", a); }
Tensor is_finite(const Tensor& a) {
  return a.function().append("is_finite", {a}, "", {Element::kI1, a.dims()});
}

Tensor convert(const Tensor& a, Element element) {
  if (a.function().is_narrow()) element = narrow(element);
  if (a.element() == element) return a;
  return a.function().append("convert", {a}, "", {element, a.dims()});
}

Tensor bitcast(const Tensor& a, Element element, Dims dims) {
  if (a.element() == element) return a;
  return a.function().append("bitcast_convert", {a}, "",
                             {element, dims.empty() ? a.dims() : std::move(dims)});
}

Tensor reshape(const Tensor& a, Dims dims) {
  if (a.dims() == dims) return a;
  const Type result{a.element(), std::move(dims)};
  if (result.num_elements() != a.type().num_elements()) {
    fail(ErrorCode::kInternal, "{}: {} cannot become {}", a.function().name(), a.type().to_string(),
         result.to_string());
  }
  return a.function().append("reshape", {a}, "", result);
}

Tensor transpose(const Tensor& a, Dims permutation) {
  Type result{a.element(), {}};
  for (const int64_t dim : permutation) result.dims.push_back(a.dim(static_cast<int>(dim)));
  return a.function().append("transpose", {a}, ", dims = " + dims_text(permutation), result);
}

Tensor broadcast(const Tensor& a, Dims dims, Dims at) {
  return a.function().append("broadcast_in_dim", {a}, ", dims = " + dims_text(at),
                             {a.element(), std::move(dims)});
}
Tensor as_rows(const Tensor& a, int64_t rows) { return broadcast(a, {rows, a.dim(0)}, {1}); }
Tensor as_columns(const Tensor& a, int64_t cols) { return broadcast(a, {a.dim(0), cols}, {0}); }

Tensor slice(const Tensor& a, const Dims& begin, const Dims& end, Dims strides) {
  Type result{a.element(), {}};
  std::string ranges;
  for (int dim = 0; dim < a.rank(); ++dim) {
    const int64_t stride = strides.empty() ? 1 : strides[dim];
    result.dims.push_back((end[dim] - begin[dim] + stride - 1) / stride);
    ranges += fmt::format("{}{}:{}", dim == 0 ? "" : ", ", begin[dim], end[dim]);
    if (stride != 1) ranges += fmt::format(":{}", stride);
  }
  return a.function().append("slice", {a}, fmt::format(" [{}]", ranges), result);
}

Tensor slice_dim(const Tensor& a, int dim, int64_t begin, int64_t end) {
  if (begin == 0 && end == a.dim(dim)) return a;
  Dims first(a.dims().size(), 0), last = a.dims();
  first[dim] = begin;
  last[dim] = end;
  return slice(a, first, last);
}

Tensor concatenate(const std::vector<Tensor>& parts, int dim) {
  if (parts.size() == 1) return parts.front();
  Type result = parts.front().type();
  result.dims[dim] = 0;
  for (const Tensor& part : parts) result.dims[dim] += part.dim(dim);
  return parts.front().function().append("concatenate", parts, fmt::format(", dim = {}", dim),
                                         result);
}

Tensor pad_end(const Tensor& a, int dim, int64_t count, double value) {
  if (count == 0) return a;
  Dims none(a.dims().size(), 0), high = none;
  high[dim] = count;
  Type result = a.type();
  result.dims[dim] += count;
  return a.function().append("pad", {a, number(a, value)},
                             fmt::format(", low = {}, high = {}, interior = {}", dims_text(none),
                                         dims_text(high), dims_text(none)),
                             result);
}

Tensor dynamic_slice(const Tensor& a, const std::vector<Tensor>& at, Dims sizes) {
  std::vector<Tensor> operands = {a};
  operands.insert(operands.end(), at.begin(), at.end());
  const std::string rest = ", sizes = " + dims_text(sizes);
  return a.function().append("dynamic_slice", operands, rest, {a.element(), std::move(sizes)});
}

Tensor dynamic_update(const Tensor& a, const Tensor& update, const std::vector<Tensor>& at) {
  std::vector<Tensor> operands = {a, update};
  operands.insert(operands.end(), at.begin(), at.end());
  return a.function().append("dynamic_update_slice", operands, "", a.type());
}

Tensor take_rows(const Tensor& a, const Tensor& given) {
  // Trainium's runtime may fail at an index outside, where XLA clamps it.
  const Tensor index = a.function().is_narrow() ? clamped(given, a.dim(0)) : given;
  Dims sizes = a.dims(), offsets;
  sizes[0] = 1;
  Type result = a.type();
  result.dims[0] = index.dim(0);
  for (int dim = 1; dim < a.rank(); ++dim) offsets.push_back(dim);
  return a.function().append_text(
      fmt::format(
          "\"stablehlo.gather\"({}, {}) {{dimension_numbers = #stablehlo.gather<offset_dims "
          "= {}, collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
          "slice_sizes = array<i64: {}>, indices_are_sorted = false}} : ({}, {}) -> {}",
          a.name(), index.name(), dims_text(offsets), fmt::join(sizes, ", "), a.type().to_string(),
          index.type().to_string(), result.to_string()),
      result);
}

Tensor add_rows_at(const Tensor& a, const Tensor& index, const Tensor& updates) {
  if (a.function().is_narrow()) {
    const Tensor within = clamped(index, a.dim(0));
    const Tensor is_inside = reshape(compare(index, Compare::kEqual, within), {index.dim(0)});
    const Tensor added =
        select(broadcast(is_inside, updates.dims(), {0}), updates, number(updates, 0));
    return add_rows_at_any(a, within, added);
  }
  return add_rows_at_any(a, index, updates);
}

Tensor sum(const Tensor& a, Dims dims) { return reduce("add", a, dims, 0); }
Tensor max(const Tensor& a, Dims dims) {
  return reduce("maximum", a, dims, -std::numeric_limits<double>::infinity());
}

Tensor dot(const Tensor& a, const Tensor& b, const Dims& a_batch, const Dims& b_batch,
           const Dims& a_contract, const Dims& b_contract, Element result) {
  const Element sums = a.element() == Element::kF64 ? Element::kF64 : Element::kF32;
  Type type{sums, {}};
  for (const int64_t dim : a_batch) type.dims.push_back(a.dim(static_cast<int>(dim)));
  const auto add_rest = [&](const Tensor& x, const Dims& batch, const Dims& contract) {
    for (int dim = 0; dim < x.rank(); ++dim) {
      const auto is_in = [dim](const Dims& dims) {
        return std::find(dims.begin(), dims.end(), dim) != dims.end();
      };
      if (!is_in(batch) && !is_in(contract)) type.dims.push_back(x.dim(dim));
    }
  };
  add_rest(a, a_batch, a_contract);
  add_rest(b, b_batch, b_contract);
  const std::string batching =
      a_batch.empty()
          ? ""
          : fmt::format(", batching_dims = {} x {}", dims_text(a_batch), dims_text(b_batch));
  const Tensor product = a.function().append(
      "dot_general", {a, b},
      fmt::format("{}, contracting_dims = {} x {}, precision = [HIGHEST, HIGHEST]", batching,
                  dims_text(a_contract), dims_text(b_contract)),
      type);
  return convert(product, result);
}

Tensor matmul_nt(const Tensor& a, const Tensor& b, Element result) {
  return dot(a, b, {}, {}, {1}, {1}, result);
}
Tensor matmul_nn(const Tensor& a, const Tensor& b, Element result) {
  return dot(a, b, {}, {}, {1}, {0}, result);
}
Tensor matmul_tn(const Tensor& a, const Tensor& b, Element result) {
  return dot(a, b, {}, {}, {0}, {0}, result);
}

}  // namespace skein::stablehlo
