// Values of a StableHLO function while its text is written (function.h), with the operators that
// rules of ops write formulas with.
//
//   const Tensor gate = to_f32(call.inputs[0]);
//   return {silu(gate) * to_f32(call.inputs[1])};
//
// Both operands of an operator have one type, or one of them is a scalar (rank 0), which stands for
// every element.
// Errors  Error{kInternal} where types do not fit: a mistake of a rule
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skein/tensor/dtype.h"

namespace skein::stablehlo {

enum class Element : uint8_t {
  kI1,
  kU8,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kF8E4M3,
  kF8E5M2,
  kBF16,
  kF32,
  kF64,
};
Element element_of(DType dtype);
std::string_view element_name(Element element);  // "f32", "ui32"
bool is_float(Element element);
int64_t bytes_of(Element element);
// f32 for f64; else the element itself.
Element narrow(Element element);

using Dims = std::vector<int64_t>;

struct Type {
  Element element = Element::kF32;
  Dims dims;

  int rank() const { return static_cast<int>(dims.size()); }
  int64_t num_elements() const;
  int64_t num_bytes() const { return num_elements() * bytes_of(element); }
  std::string to_string() const;  // "tensor<4x8xf32>"
  bool operator==(const Type&) const = default;
};

class Function;

// A copyable handle. One that was made without a function is absent: an optional input.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Function* function, std::string name, Type type)
      : function_(function), name_(std::move(name)), type_(std::move(type)) {}

  bool present() const { return function_ != nullptr; }
  Function& function() const { return *function_; }
  const std::string& name() const { return name_; }  // "%3"
  const Type& type() const { return type_; }
  Element element() const { return type_.element; }
  const Dims& dims() const { return type_.dims; }
  int rank() const { return type_.rank(); }
  int64_t dim(int index) const { return type_.dims.at(index < 0 ? rank() + index : index); }

 private:
  Function* function_ = nullptr;
  std::string name_;
  Type type_;
};

Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator%(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a);
Tensor operator&(const Tensor& a, const Tensor& b);
Tensor operator|(const Tensor& a, const Tensor& b);
Tensor operator^(const Tensor& a, const Tensor& b);
Tensor operator~(const Tensor& a);
Tensor operator<<(const Tensor& a, int bits);
Tensor operator>>(const Tensor& a, int bits);  // logical: zeros come in
// A constant of the tensor's element type.
Tensor operator+(const Tensor& a, double b);
Tensor operator-(const Tensor& a, double b);
Tensor operator*(const Tensor& a, double b);
Tensor operator/(const Tensor& a, double b);
Tensor operator+(double a, const Tensor& b);
Tensor operator-(double a, const Tensor& b);
Tensor operator*(double a, const Tensor& b);
Tensor operator/(double a, const Tensor& b);

// Element by element. Comparisons give i1.
enum class Compare : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
Tensor compare(const Tensor& a, Compare how, const Tensor& b);
Tensor compare(const Tensor& a, Compare how, double b);
Tensor select(const Tensor& condition, const Tensor& then, const Tensor& otherwise);
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, double b);
Tensor minimum(const Tensor& a, double b);
Tensor power(const Tensor& a, const Tensor& b);
Tensor abs(const Tensor& a);
Tensor exp(const Tensor& a);
Tensor log(const Tensor& a);
Tensor sqrt(const Tensor& a);
Tensor rsqrt(const Tensor& a);
Tensor logistic(const Tensor& a);
Tensor is_finite(const Tensor& a);
Tensor convert(const Tensor& a, Element element);  // to nearest, ties to even
// The same bits; `dims` empty: those of `a`. Between elements of different sizes the last dim goes
// or comes.
Tensor bitcast(const Tensor& a, Element element, Dims dims = {});

inline Tensor to_f32(const Tensor& a) { return convert(a, Element::kF32); }
inline Tensor to_f64(const Tensor& a) { return convert(a, Element::kF64); }

// Shapes.
Tensor reshape(const Tensor& a, Dims dims);
Tensor transpose(const Tensor& a, Dims permutation);
// Dim i of `a` becomes dim at[i] of the result; the other dims repeat it.
Tensor broadcast(const Tensor& a, Dims dims, Dims at);
// `a` repeated over all other dims of a matrix: a [C] is every row of [rows, C], or [R] every
// column of [R, cols].
Tensor as_rows(const Tensor& a, int64_t rows);
Tensor as_columns(const Tensor& a, int64_t cols);
Tensor slice(const Tensor& a, const Dims& begin, const Dims& end, Dims strides = {});
Tensor slice_dim(const Tensor& a, int dim, int64_t begin, int64_t end);
Tensor concatenate(const std::vector<Tensor>& parts, int dim);
// Behind the end of a dim, elements of this value.
Tensor pad_end(const Tensor& a, int dim, int64_t count, double value = 0);
// `at`: an integer scalar for each dim, which are clamped so that the slice lies inside.
Tensor dynamic_slice(const Tensor& a, const std::vector<Tensor>& at, Dims sizes);
Tensor dynamic_update(const Tensor& a, const Tensor& update, const std::vector<Tensor>& at);
// y[r, ...] = a[index[r], ...], each index clamped.
Tensor take_rows(const Tensor& a, const Tensor& index);
// a[index[r], ...] += updates[r, ...]; an index outside is left out. XLA adds in an order of its
// own.
Tensor add_rows_at(const Tensor& a, const Tensor& index, const Tensor& updates);

// Reductions over `dims`, which go.
Tensor sum(const Tensor& a, Dims dims);
Tensor max(const Tensor& a, Dims dims);  // of floats, from -inf

// sum over the contracted dims of a b. The result's dims: batch, then those left of `a`, then of
// `b`. Operands of 8 or 16 bits are summed in fp32; the result is `result`.
Tensor dot(const Tensor& a, const Tensor& b, const Dims& a_batch, const Dims& b_batch,
           const Dims& a_contract, const Dims& b_contract, Element result = Element::kF32);
// Of matrices: a b^T, a b and a^T b.
Tensor matmul_nt(const Tensor& a, const Tensor& b, Element result = Element::kF32);
Tensor matmul_nn(const Tensor& a, const Tensor& b, Element result = Element::kF32);
Tensor matmul_tn(const Tensor& a, const Tensor& b, Element result = Element::kF32);

}  // namespace skein::stablehlo
