// Writes the text of one StableHLO function, an operation after the other, and of modules that
// consist of such functions.
//
// Narrow   a function for hardware without numbers of 64 bits, such as Trainium: what would be f64
//          is f32. Rules ask is_narrow() where that is not enough
// Dialect  operations that StableHLO 0.9 had, without dynamic shapes, tokens and uninitialized
//          buffers; loops have a constant number of turns. Compilers for Trainium take no more
// Source   openxla.org/stablehlo/spec
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "skein/stablehlo/tensor.h"

namespace skein::stablehlo {

// Which replicas exchange in a collective: lists of equal length, each in the order in which parts
// lie side by side.
using ReplicaGroups = std::vector<std::vector<int64_t>>;

class Function {
 public:
  Function(std::string name, const std::vector<Type>& arguments, bool is_narrow = false);
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<Tensor>& arguments() const { return arguments_; }
  bool is_narrow() const { return is_narrow_; }

  Tensor constant(Element element, double value, Dims dims = {});
  Tensor word(Element element, uint64_t value, Dims dims = {});  // of an integer type
  Tensor words(Element element, const std::vector<int64_t>& values, Dims dims);
  Tensor iota(Element element, Dims dims, int dim);

  // `carried` through so many turns; `turn` gets the turn's number, i32[], and what is carried.
  using Turn = std::function<std::vector<Tensor>(const Tensor&, const std::vector<Tensor>&)>;
  std::vector<Tensor> repeat(int64_t turns, const std::vector<Tensor>& carried, const Turn& turn);

  // Collectives, over the replicas of a group.
  Tensor replica_id();  // ui32[]
  Tensor all_gather(const Tensor& a, int dim, const ReplicaGroups& groups);
  Tensor all_to_all(const Tensor& a, int dim, const ReplicaGroups& groups);  // pieces of `dim`
  Tensor all_reduce(const Tensor& a, const ReplicaGroups& groups);  // sums, in XLA's own order

  std::vector<Tensor> call(const std::string& function, const std::vector<Tensor>& arguments,
                           const std::vector<Type>& results);

  // For the operators of tensor.h: "%3 = <operation> <operands><rest> : <signature>".
  Tensor append(std::string_view operation, const std::vector<Tensor>& operands,
                std::string_view rest, Type result, bool one_type = false);
  Tensor append_text(const std::string& text, Type result);  // of "%3 = <text>"

  void finish(const std::vector<Tensor>& results);
  // `attributes`: of each argument, "" or "{…}".
  std::string text(bool is_public, const std::vector<std::string>& attributes = {}) const;
  // Without its name: what tells two functions apart.
  const std::string& body() const { return body_; }
  const std::vector<Type>& result_types() const { return results_; }

 private:
  std::string fresh() { return "%" + std::to_string(next_++); }

  std::string name_;
  bool is_narrow_;
  std::vector<Tensor> arguments_;
  std::string body_;
  std::vector<Type> results_;
  int64_t next_ = 0;
  int indent_ = 2;
};

}  // namespace skein::stablehlo
