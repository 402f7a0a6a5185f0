// One description of an op and its inputs; every property that an op owes is checked from it.
//
//   OpCase test{.op = &kAdd,
//               .inputs = {random_tensor(DType::kBF16, {5, 33}), random_tensor(DType::kBF16, {5,
//               33})}, .reference = [](const Tensors& in) { ... return Outputs{y}; }};
//   check_op(test);
//
// check_op runs the node on its CPU kernel and checks: inference and `verify`; each output against
// the reference in double precision; operands with distant, unaligned rows, on every instruction
// set that Highway finds here; bytes outside of any operand and around the scratch memory
// untouched; the same bits when repeated and with 1, 2 and 3 threads; a cost. Where the op has a
// derivative rule, the rule's nodes are run as well and each gradient is compared with finite
// differences of the reference.
//
// Tolerance  |got - want| <= r |want| + tolerance * max|want|, r = 2^-8 for a bf16 output, else 0.
#pragma once

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "skein/ir/backward.h"
#include "skein/ir/verify.h"
#include "skein/ops/add/add.h"
#include "tests/ops/graph_run.h"
#include "tests/ops/ulp.h"

namespace skein::op_test {

using Outputs = std::vector<std::vector<double>>;

struct OpCase {
  const OpDef* op = nullptr;
  Attrs attrs = {};
  Tensors inputs;
  // One vector an output; an empty one is not compared. Must be smooth where differentiated.
  std::function<Outputs(const Tensors&)> reference;
  double tolerance = 1e-5;
  Phase phase = Phase::kForward;
  // Derivative: the outputs that a gradient arrives for, and its accuracy.
  std::vector<int> output_grads = {0};
  bool unit_grad = false;  // the gradient that arrives is kUnitGrad
  double grad_tolerance_f32 = 1e-4;
  double grad_tolerance_bf16 = 1e-2;
  int num_probes = 64;  // elements of each input that are compared with finite differences
};

// The differentiate pass for a graph of one node.
class SingleNodeBackward : public BackwardContext {
 public:
  SingleNodeBackward(Graph& graph, const OpCase& test, std::map<ValueId, Tensor>& inputs)
      : graph_(graph),
        node_(graph.nodes().at(0)),
        test_(test),
        grads_(test.inputs.size(), kNoValue) {
    for (const int index : test.output_grads) {
      const TensorType& type = graph.type(node_.outputs.at(index));
      const Tensor dy = test.unit_grad
                            ? make_tensor(type.dtype, type.shape, [](int64_t) { return 1.0; })
                            : random_tensor(type.dtype, type.shape, 900 + index);
      output_grads_[index] = dy;
      if (test.unit_grad) continue;
      output_grad_ids_[index] = graph.add_input(Role::kGradient, fmt::format("dy.{}", index), type);
      inputs[output_grad_ids_[index]] = dy;
    }
    for (size_t i = 0; i < test.inputs.size(); ++i) {
      if (test.inputs[i].role != Role::kParameter) continue;
      const Shape& shape = test.inputs[i].shape;
      grads_[i] = graph.add_input(Role::kGradient, fmt::format("sum.{}", i),
                                  TensorType::replicated(DType::kF32, shape, graph.mesh()));
      sums_[i] = inputs[grads_[i]] = random_tensor(DType::kF32, shape, 950 + i);
    }
    graph.set_phase(Phase::kBackward);
    node_.op->backward(*this);
  }

  Graph& graph() override { return graph_; }
  const Node& node() const override { return node_; }
  ValueId output_grad(int index) const override {
    if (!output_grads_.contains(index)) return kNoValue;
    return test_.unit_grad ? kUnitGrad : output_grad_ids_.at(index);
  }
  bool needs_grad(int index) const override {
    const Tensor& tensor = test_.inputs.at(index);
    return tensor.role == Role::kInput && tensor.shape.rank() > 0 && tensor.dtype != DType::kI32;
  }
  void add_input_grad(int index, ValueId grad) override {
    ValueId& sum = grads_.at(index);
    sum = sum == kNoValue ? grad : add(graph_, sum, grad, name(index));
  }
  bool is_parameter(int index) const override {
    return test_.inputs.at(index).role == Role::kParameter;
  }
  ValueId gradient_sum(int index, ValueId) override { return grads_.at(index); }
  void set_gradient_sum(int index, ValueId sum) override { grads_.at(index) = sum; }

  ValueId grad(int index) const { return grads_.at(index); }
  // The gradients that arrive, and what a parameter's sum started from.
  const std::map<int, Tensor>& output_grads() const { return output_grads_; }
  double initial(int index, int64_t i) const {
    return sums_.contains(index) ? sums_.at(index)[i] : 0.0;
  }

 private:
  Graph& graph_;
  const Node node_;
  const OpCase& test_;
  std::vector<ValueId> grads_;
  std::map<int, ValueId> output_grad_ids_;
  std::map<int, Tensor> output_grads_;
  std::map<int, Tensor> sums_;
};

// `want` may be rounded to the dtype as well.
inline void expect_close(const std::vector<double>& got, const std::vector<double>& want,
                         DType dtype, double tolerance, const std::string& what, double floor = 0.0,
                         bool want_is_rounded = false) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 0;
  for (const double value : want) largest = std::max(largest, std::abs(value));
  const double rounding = want_is_rounded ? 0x1p-7 : 0x1p-8;
  const double relative = dtype == DType::kBF16 ? rounding : 0.0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double allowed = relative * std::abs(want[i]) + tolerance * largest + floor;
    // Written so that NaN fails.
    if (!(std::abs(got[i] - want[i]) <= allowed) && got[i] != want[i]) {
      FAIL() << what << "[" << i << "] is " << got[i] << ", expected " << want[i] << " +- "
             << allowed;
    }
  }
}

struct BuiltCase {
  Graph graph{Mesh::standard(1, 1, 1, 1)};
  std::map<ValueId, Tensor> inputs;
};

inline BuiltCase build(const OpCase& test, int num_outputs) {
  BuiltCase built;
  std::vector<ValueId> ids;
  built.graph.set_phase(test.phase);
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    const Tensor& tensor = test.inputs[i];
    ids.push_back(kNoValue);
    if (tensor.shape.rank() == 0) continue;
    ids.back() = built.graph.add_input(
        tensor.role, (tensor.role == Role::kGradient ? "sum.in" : "in") + std::to_string(i),
        TensorType::replicated(tensor.dtype, tensor.shape, built.graph.mesh()));
    built.inputs[ids.back()] = tensor;
  }
  std::vector<std::string> names;
  for (int i = 0; i < num_outputs; ++i) names.push_back(fmt::format("out{}", i));
  built.graph.add(*test.op, ids, test.attrs, names);
  return built;
}

// With distant rows, and on every instruction set that this machine has.
inline std::vector<std::pair<std::string, GraphRun>> other_runs(const BuiltCase& built) {
  std::vector<std::pair<std::string, GraphRun>> runs;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    runs.emplace_back(
        fmt::format(" ({}, distant rows)", hwy::TargetName(target)),
        GraphRun(built.graph, built.inputs, {.row_padding = 3, .simd_target = target}));
  }
  return runs;
}

inline bool has_bf16_input(const OpCase& test) {
  return std::ranges::any_of(test.inputs,
                             [](const Tensor& tensor) { return tensor.dtype == DType::kBF16; });
}

inline void check_forward(const OpCase& test, const Outputs& want) {
  const BuiltCase built = build(test, static_cast<int>(want.size()));
  verify(built.graph, "the test");
  const Node& node = built.graph.nodes().at(0);
  const Cost cost = test.op->cost(built.graph.call(node));
  EXPECT_TRUE(cost.flops >= 0 && cost.bytes_read >= 0 && cost.bytes_written >= 0);
  const OpDef& op = *test.op;
  const bool is_view = op.layout != nullptr && !op.layout(built.graph.call(node)).aliases.empty();
  EXPECT_TRUE(is_view || cost.flops > 0 || cost.bytes_read + cost.bytes_written > 0)
      << "a step of this op would be free";

  const GraphRun first(built.graph, built.inputs, {.num_threads = 1});
  const GraphRun again(built.graph, built.inputs, {.num_threads = 1});
  const GraphRun two(built.graph, built.inputs, {.num_threads = 2});
  const GraphRun three(built.graph, built.inputs, {.num_threads = 3});
  const auto others = other_runs(built);
  for (size_t i = 0; i < want.size(); ++i) {
    const ValueId id = node.outputs.at(i);
    const DType dtype = built.graph.type(id).dtype;
    const std::string name = fmt::format("{} output {}", test.op->name, i);
    const std::vector<double> got = first.read(id);
    EXPECT_TRUE(got == again.read(id)) << name << " differs when repeated";
    EXPECT_TRUE(got == two.read(id)) << name << " differs between 1 and 2 threads";
    EXPECT_TRUE(got == three.read(id)) << name << " differs between 1 and 3 threads";
    if (want[i].empty()) continue;
    expect_close(got, want[i], dtype, test.tolerance, name);
    record_ulp(test.op->name, "forward", has_bf16_input(test), dtype, got, want[i]);
    for (const auto& [label, other] : others) {
      expect_close(other.read(id), want[i], dtype, test.tolerance, name + label);
    }
  }
}

// d(sum over outputs of dy * y) / d(inputs[index][element]), by central differences: of two points,
// accurate to 1e-8, or where ULPs are recorded of four, accurate to 1e-10.
inline double finite_difference(const OpCase& test, const std::map<int, Tensor>& output_grads,
                                int index, int64_t element) {
  Tensors inputs = test.inputs;
  double& x = inputs[index].values[element];
  const double center = x, step = (records_ulp() ? 1e-3 : 1e-4) * std::max(1.0, std::abs(center));
  const auto difference_of = [&](double distance) {
    double difference = 0;
    for (const double sign : {1.0, -1.0}) {
      x = center + sign * distance;
      const Outputs outputs = test.reference(inputs);
      for (const auto& [output, dy] : output_grads) {
        for (size_t i = 0; i < dy.values.size(); ++i) {
          difference += sign * dy[i] * outputs[output][i];
        }
      }
    }
    return difference / (2 * distance);
  };
  if (!records_ulp()) return difference_of(step);
  return (4 * difference_of(step) - difference_of(2 * step)) / 3;
}

inline void check_backward(const OpCase& test, int num_outputs) {
  BuiltCase built = build(test, num_outputs);
  const SingleNodeBackward backward(built.graph, test, built.inputs);
  verify(built.graph, "the derivative rule");
  const GraphRun first(built.graph, built.inputs, {.num_threads = 1});
  const GraphRun two(built.graph, built.inputs, {.num_threads = 2});
  const GraphRun three(built.graph, built.inputs, {.num_threads = 3});
  const auto others = other_runs(built);
  for (size_t index = 0; index < test.inputs.size(); ++index) {
    const Tensor& input = test.inputs[index];
    if (!backward.needs_grad(index) && !backward.is_parameter(index)) continue;
    const std::string name = fmt::format("{} gradient of input {}", test.op->name, index);
    const ValueId id = backward.grad(index);
    if (id == kUnitGrad) {
      for (int64_t i = 0; i < static_cast<int64_t>(input.values.size()); ++i) {
        EXPECT_NEAR(finite_difference(test, backward.output_grads(), index, i), 1.0, 1e-6) << name;
      }
      continue;
    }
    ASSERT_GE(id, 0) << name << " is missing";
    const DType dtype = built.graph.type(id).dtype;
    EXPECT_EQ(dtype, input.role == Role::kParameter ? DType::kF32 : input.dtype) << name;
    const std::vector<double> got = first.read(id);
    EXPECT_TRUE(got == two.read(id)) << name << " differs between 1 and 2 threads";
    EXPECT_TRUE(got == three.read(id)) << name << " differs between 1 and 3 threads";
    ASSERT_EQ(got.size(), input.values.size()) << name;
    std::vector<int64_t> probes;
    const int64_t size = got.size(), count = std::min<int64_t>(size, test.num_probes);
    for (int64_t probe = 0; probe < count; ++probe) {
      probes.push_back(count == 1 ? 0 : probe * (size - 1) / (count - 1));
    }
    std::vector<double> want;
    for (const int64_t i : probes) {
      want.push_back(backward.initial(index, i) +
                     finite_difference(test, backward.output_grads(), index, i));
    }
    const auto compare = [&](const GraphRun& run, const std::string& label) {
      // A sum of bf16 terms is as accurate as the terms.
      const bool is_bf16 = dtype == DType::kBF16 || has_bf16_input(test);
      const double tolerance = is_bf16 ? test.grad_tolerance_bf16 : test.grad_tolerance_f32;
      constexpr double kNoise = 1e-9;  // of a finite difference
      const std::vector<double> all = run.read(id);
      std::vector<double> probed;
      for (const int64_t i : probes) probed.push_back(all[i]);
      expect_close(probed, want, dtype, tolerance, name + label, kNoise);
      if (&run == &first) {
        record_ulp(test.op->name, "gradient", has_bf16_input(test), dtype, probed, want, kNoise);
      }
    };
    compare(first, "");
    for (const auto& [label, other] : others) compare(other, label);
  }
}

inline void check_op(const OpCase& test) {
  const int threads = omp_get_max_threads();
  const Outputs want = test.reference(test.inputs);
  check_forward(test, want);
  if (test.op->backward != nullptr) check_backward(test, static_cast<int>(want.size()));
  omp_set_num_threads(threads);
}

}  // namespace skein::op_test
