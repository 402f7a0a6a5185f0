// Products of 8-bit operands on the device under test and on the CPU, for the same operands.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "skein/ops/linear/fp8_operands.h"
#include "skein/ops/linear/linear.h"
#include "tests/ops/op_harness.h"

namespace skein::op_test {

struct Fp8Product {
  int64_t tokens, in;
  std::vector<int64_t> out;
  bool bias = false, f32_output = false;
  double scale = 1;  // of values and gradients
};

inline Attrs fp8_attrs(const OpDef& op, const Fp8Product& product) {
  Attrs attrs = {{"parts", static_cast<int64_t>(product.out.size())}, {"fp8", true}};
  if (&op == &kLinear) {
    attrs.set("bias", product.bias);
    attrs.set("f32_output", product.f32_output);
  }
  return attrs;
}

// Appends the largest magnitudes of the groups.
inline void add_largest(std::string_view op, int parts, Tensors& inputs) {
  const auto groups = fp8_groups(op, parts);
  for (const Fp8Group& group : groups) {
    Tensor largest{DType::kF32, Shape{1}, {0.0}};
    for (int i = group.begin; i < group.begin + group.count; ++i) {
      for (const double value : inputs[i].values) {
        largest.values[0] = std::max(largest.values[0], std::abs(value));
      }
    }
    inputs.push_back(std::move(largest));
  }
}

inline OpCase fp8_case(const OpDef& op, const Fp8Product& product) {
  OpCase test{.op = &op, .attrs = fp8_attrs(op, product)};
  if (&op != &kLinear) test.phase = Phase::kBackward;
  const Tensor x = random_tensor(DType::kBF16, {product.tokens, product.in}, 1, product.scale);
  Tensors w, b, dy, g;
  for (const int64_t out : product.out) {
    const auto stream = static_cast<uint32_t>(10 * w.size());
    w.push_back(random_tensor(DType::kBF16, {out, product.in}, 2 + stream, 0.02, Role::kParameter));
    b.push_back(random_tensor(DType::kBF16, {out}, 3 + stream, 1.0, Role::kParameter));
    dy.push_back(
        random_tensor(DType::kBF16, {product.tokens, out}, 4 + stream, 1e-4 * product.scale));
    g.push_back(random_tensor(DType::kF32, {out, product.in}, 5 + stream, 1e-3, Role::kGradient));
  }
  const auto add = [&](const Tensors& more) {
    test.inputs.insert(test.inputs.end(), more.begin(), more.end());
  };
  if (&op == &kLinear) add({x}), add(w);
  if (&op == &kLinear && product.bias) add(b);
  if (&op == &kLinearDx) add(dy), add(w);
  if (&op == &kLinearDw) add(dy), add({x}), add(g);
  if (&op == &kLinearDxDw) add(dy), add(w), add({x}), add(g);
  add_largest(op.name, static_cast<int>(product.out.size()), test.inputs);
  return test;
}

inline const OpDef* const kFp8Ops[] = {&kLinear, &kLinearDx, &kLinearDw, &kLinearDxDw};
inline int num_outputs(const OpDef& op, const Fp8Product& product) {
  if (&op == &kLinearDx) return 1;
  return static_cast<int>(product.out.size()) + (&op == &kLinearDxDw ? 1 : 0);
}
// Whether an output is dx.
inline bool is_dx(const OpDef& op, size_t output) {
  return &op == &kLinearDx || (&op == &kLinearDxDw && output == 0);
}

inline Outputs run_on(const BuiltCase& built, KernelTable kernels, int64_t row_padding) {
  const KernelTable before = std::exchange(test_device().kernels, std::move(kernels));
  const GraphRun run(built.graph, built.inputs, {.row_padding = row_padding});
  test_device().kernels = before;
  Outputs outputs;
  for (const ValueId id : built.graph.nodes()[0].outputs) outputs.push_back(run.read(id));
  return outputs;
}

// Compares results of dense rows, and of rows with each of `paddings` elements between them.
inline void expect_products_of_cpu(const OpDef& op, const Fp8Product& product,
                                   const std::vector<int64_t>& paddings,
                                   double tolerance = fp8_tolerance()) {
  const BuiltCase built = build(fp8_case(op, product), num_outputs(op, product));
  const KernelTable kernels = test_device().kernels;
  const Outputs want = run_on(built, cpu_kernels(), 0), got = run_on(built, kernels, 0);
  const auto expect_same = [&](const Outputs& results, const std::string& what) {
    for (size_t i = 0; i < want.size(); ++i) {
      const bool bf16 = is_dx(op, i) || (&op == &kLinear && !product.f32_output);
      expect_close(
          results[i], want[i], bf16 ? DType::kBF16 : DType::kF32, tolerance,
          fmt::format("{} {} x {} output {}{}", op.name, product.tokens, product.in, i, what), 0.0,
          true);
    }
  };
  expect_same(got, "");
  EXPECT_TRUE(run_on(built, kernels, 0) == got) << op.name << " differs when it is repeated";
  for (const int64_t padding : paddings) {
    expect_same(run_on(built, kernels, padding), fmt::format(", rows {} apart", padding));
  }
}

// ---- three parts that lie as one matrix, or apart

constexpr int64_t kPartTokens = 64, kPartIn = 48;
constexpr std::array<int64_t, 3> kPartOut = {64, 16, 32};

// A matrix that holds the parts, `gap` rows or columns apart.
struct Fp8Parts {
  Fp8Parts(DType dtype, bool below, int64_t rows, int64_t cols, int64_t gap, uint32_t stream) {
    const int64_t total = 112 + 2 * gap;
    const Shape shape = below ? Shape{total, cols} : Shape{rows, total};
    data = test_device().allocate(shape.num_elements() * size_of(dtype));
    const View whole = View::contiguous(data, dtype, shape);
    int64_t at = 0;
    for (size_t i = 0; i < kPartOut.size(); ++i) {
      View part = whole;
      part.shape = below ? Shape{kPartOut[i], cols} : Shape{rows, kPartOut[i]};
      part.data = static_cast<char*>(data) + at * (below ? whole.row_stride : 1) * size_of(dtype);
      GraphRun::fill(part,
                     random_tensor(dtype, part.shape, stream + static_cast<uint32_t>(i)).values);
      views.push_back(part);
      at += kPartOut[i] + gap;
    }
  }
  ~Fp8Parts() { test_device().release(data); }
  Fp8Parts(const Fp8Parts&) = delete;
  Fp8Parts& operator=(const Fp8Parts&) = delete;
  void* data;
  std::vector<View> views;
};

inline void run_kernel(const OpDef& op, KernelCall call) {
  const Kernel& kernel = test_device().kernels.at(op.name);
  const int64_t bytes = kernel.scratch_bytes == nullptr ? 0 : kernel.scratch_bytes(call);
  void* const memory = test_device().allocate(bytes + 64);
  const auto address = reinterpret_cast<uintptr_t>(memory);
  call.scratch = static_cast<char*>(memory) + (64 - address % 64) % 64;
  call.stream = test_device().stream;
  kernel.run(call);
  test_device().synchronize();
  test_device().release(memory);
}

// The results of a second run, before which `again` is called: the first one chooses algorithms.
inline std::vector<double> run_parts(
    const OpDef& op, bool apart, const std::function<void()>& again = [] {}) {
  const int64_t gap = apart ? 16 : 0;
  const Fp8Parts x(DType::kBF16, false, kPartTokens, kPartIn, 0, 1),
      w(DType::kBF16, true, 0, kPartIn, gap, 10);
  const Fp8Parts y(DType::kBF16, false, kPartTokens, 0, gap, 20),
      g(DType::kF32, true, 0, kPartIn, gap, 30);
  View matrix = x.views[0];  // [kPartTokens, kPartIn]
  matrix.shape = Shape{kPartTokens, kPartIn};
  const Fp8Parts of_dx(DType::kBF16, false, kPartTokens, kPartIn, 0, 40);
  View dx = of_dx.views[0];
  dx.shape = matrix.shape;
  KernelCall call{.attrs = fp8_attrs(op, {kPartTokens, kPartIn, {1, 1, 1}})};
  const auto add = [&](const std::vector<View>& more) {
    call.inputs.insert(call.inputs.end(), more.begin(), more.end());
  };
  if (&op == &kLinear) add({matrix}), add(w.views), call.outputs = y.views;
  if (&op == &kLinearDx) add(y.views), add(w.views), call.outputs = {matrix};
  if (&op == &kLinearDw) add(y.views), add({matrix}), add(g.views), call.outputs = g.views;
  if (&op == &kLinearDxDw) {
    add(y.views), add(w.views), add({matrix}), add(g.views), call.outputs = g.views;
    call.outputs.insert(call.outputs.begin(), dx);
  }
  const auto groups = fp8_groups(op.name, static_cast<int>(kPartOut.size()));
  const Fp8Parts largest(DType::kF32, true, 0, 1, 0, 50);  // room for more than the groups
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto begin = call.inputs.begin() + groups[g].begin;
    View found = largest.views[g];
    found.shape = Shape{1};
    run_kernel(kFp8Largest, {.inputs = {begin, begin + groups[g].count}, .outputs = {found}});
    call.inputs.push_back(found);
  }
  run_kernel(op, call);  // measures
  for (size_t i = 0; i < kPartOut.size(); ++i) {
    GraphRun::fill(g.views[i], random_tensor(DType::kF32, g.views[i].shape, 30 + i).values);
  }
  if (&op == &kLinearDx) {
    GraphRun::fill(matrix, std::vector<double>(kPartTokens * kPartIn, 0.0));
  }
  again();
  run_kernel(op, call);
  std::vector<double> results;
  for (const View& output : call.outputs) {
    for (const double value : GraphRun::values_of(output)) results.push_back(value);
  }
  return results;
}

}  // namespace skein::op_test
