#include "skein/ops/linear/linear.h"

#include <algorithm>
#include <cmath>

#include "skein/ops/linear/fp8_operands.h"
#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

Attrs attrs_of(int64_t parts, bool bias, bool f32_output) {
  return {{"parts", parts}, {"bias", bias}, {"f32_output", f32_output}};
}

// x, w_1..w_n, b_1..b_n.
Outputs reference(const Tensors& in, int parts, bool bias) {
  Outputs outputs;
  const Tensor& x = in[0];
  for (int part = 0; part < parts; ++part) {
    const Tensor& w = in[1 + part];
    std::vector<double>& y = outputs.emplace_back();
    for (int64_t t = 0; t < x.shape.dim(0); ++t) {
      for (int64_t o = 0; o < w.shape.dim(0); ++o) {
        double sum = bias ? in[1 + parts + part][o] : 0.0;
        for (int64_t k = 0; k < x.shape.dim(1); ++k) sum += x.at(t, k) * w.at(o, k);
        y.push_back(sum);
      }
    }
  }
  return outputs;
}

OpCase make_case(DType dtype, int64_t tokens, int64_t in, const std::vector<int64_t>& out,
                 bool bias, bool f32_output = false) {
  const int parts = static_cast<int>(out.size());
  OpCase test{.op = &kLinear, .attrs = attrs_of(parts, bias, f32_output)};
  test.inputs.push_back(random_tensor(dtype, {tokens, in}, 1));
  for (int i = 0; i < parts; ++i) {
    test.inputs.push_back(random_tensor(dtype, {out[i], in}, 10 + i, 0.3, Role::kParameter));
  }
  for (int i = 0; bias && i < parts; ++i) {
    test.inputs.push_back(random_tensor(dtype, {out[i]}, 20 + i, 1.0, Role::kParameter));
  }
  test.reference = [=](const Tensors& inputs) { return reference(inputs, parts, bias); };
  test.output_grads.resize(parts);
  for (int i = 0; i < parts; ++i) test.output_grads[i] = i;
  test.num_probes = 16;
  return test;
}

TEST(Linear, MeetsItsReference) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const bool bias : {false, true}) {
      check_op(make_case(dtype, 1, 37, {53}, bias));
      check_op(make_case(dtype, 129, 37, {53}, bias));
      check_op(make_case(dtype, 33, 64, {64, 16, 16}, bias));
      check_op(make_case(dtype, 7, 5, {3, 1, 9}, bias));
    }
  }
}

TEST(Linear, MeetsItsReferenceWhereOnlySomePartsReachTheLoss) {
  OpCase test = make_case(DType::kF32, 9, 12, {4, 6, 5}, true);
  test.output_grads = {0, 2};
  check_op(test);
}

TEST(Linear, StoresF32WhenAsked) {
  OpCase test = make_case(DType::kBF16, 20, 48, {70}, false, true);
  Graph graph = build(test, 1).graph;
  EXPECT_EQ(graph.type(graph.nodes()[0].outputs[0]).dtype, DType::kF32);
  check_forward(test, test.reference(test.inputs));
}

// The operands as 8-bit products would see them.
double largest_of(const Tensors& in, const Fp8Group& group) {
  double largest = 0;
  for (int i = group.begin; i < group.begin + group.count; ++i) {
    for (const double value : in[i].values) {
      if (!std::isnan(value)) largest = std::max(largest, std::abs(value));
    }
  }
  return largest;
}

// What the op reads beside its own inputs.
void add_largest(std::string_view op, int parts, Tensors& in) {
  for (const Fp8Group& group : fp8_groups(op, parts)) {
    in.push_back({DType::kF32, Shape{1}, {largest_of(in, group)}});
  }
}

Tensors rounded_to_fp8(Tensors in, std::string_view op, int parts) {
  for (const Fp8Group& group : fp8_groups(op, parts)) {
    const auto begin = in.begin() + group.begin, end = begin + group.count;
    const int exponent =
        fp8_scale_exponent(static_cast<float>(largest_of(in, group)), group.format);
    for (auto tensor = begin; tensor != end; ++tensor) {
      for (double& value : tensor->values) {
        const auto scaled = static_cast<float>(std::ldexp(value, exponent));
        value = std::ldexp(from_fp8(to_fp8(scaled, group.format), group.format), -exponent);
      }
    }
  }
  return in;
}

OpCase make_fp8_case(const OpDef& op, int64_t tokens, int64_t in, const std::vector<int64_t>& out) {
  const int parts = static_cast<int>(out.size());
  OpCase test = make_case(DType::kBF16, tokens, in, out, false);
  test.attrs.set("fp8", true);
  test.reference = [=](const Tensors& inputs) {
    return reference(rounded_to_fp8(inputs, "linear", parts), parts, false);
  };
  const Tensor x = test.inputs[0];
  const Tensors w(test.inputs.begin() + 1, test.inputs.end());
  if (&op == &kLinear) {
    add_largest(op.name, parts, test.inputs);
    return test;
  }
  const bool has_dx = &op != &kLinearDw, has_dw = &op != &kLinearDx;
  test = {.op = &op, .attrs = {{"parts", int64_t{parts}}, {"fp8", true}}};
  test.phase = Phase::kBackward;
  for (int i = 0; i < parts; ++i) {
    test.inputs.push_back(random_tensor(DType::kBF16, {tokens, out[i]}, 30 + i, 1e-4));
  }
  if (has_dx) test.inputs.insert(test.inputs.end(), w.begin(), w.end());
  const int at_x = has_dx ? 2 * parts : parts;
  if (has_dw) {
    test.inputs.push_back(x);
    for (int i = 0; i < parts; ++i) {
      test.inputs.push_back(
          random_tensor(DType::kF32, {out[i], in}, 40 + i, 1e-3, Role::kGradient));
    }
  }
  add_largest(op.name, parts, test.inputs);
  test.reference = [=, &op](const Tensors& inputs) {
    const Tensors seen = rounded_to_fp8(inputs, op.name, parts);
    Outputs outputs;
    if (has_dx) outputs.emplace_back(tokens * in);
    for (int part = 0; part < parts; ++part) {
      const Tensor& dy = seen[part];
      if (has_dw) outputs.push_back(seen[at_x + 1 + part].values);
      for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t o = 0; o < out[part]; ++o) {
          for (int64_t k = 0; k < in; ++k) {
            if (has_dx) outputs[0][t * in + k] += dy.at(t, o) * seen[parts + part].at(o, k);
            if (has_dw) outputs.back()[o * in + k] += dy.at(t, o) * seen[at_x].at(t, k);
          }
        }
      }
    }
    return outputs;
  };
  return test;
}

TEST(Linear, MultipliesOperandsOf8BitsWhenAsked) {
  for (const OpDef* op : {&kLinear, &kLinearDx, &kLinearDw, &kLinearDxDw}) {
    for (OpCase test : {make_fp8_case(*op, 32, 48, {16, 32}), make_fp8_case(*op, 13, 37, {5, 8})}) {
      test.tolerance = std::max(test.tolerance, fp8_tolerance());
      check_forward(test, test.reference(test.inputs));
    }
  }
}

// A product of weights that round_weights has rounded has the bits of one that rounds them, but on
// a GPU, where the parts may lie otherwise, so that another algorithm multiplies.
TEST(Linear, MultipliesKeptWeightsToTheSameBits) {
  for (const int64_t tokens : {32, 13}) {
    for (const OpDef* op : {&kLinear, &kLinearDx, &kLinearDxDw}) {
      OpCase test = make_fp8_case(*op, tokens, 48, {16, 32});
      const int first = op == &kLinear ? 1 : 2;  // of the weights
      test.inputs[first].values[7] = std::nan("");
      const int outputs = op == &kLinear ? 2 : op == &kLinearDx ? 1 : 3;
      const BuiltCase each = build(test, outputs);
      BuiltCase kept;
      kept.graph.set_phase(test.phase);
      std::vector<ValueId> ids;
      const auto add = [&](Role role, const std::string& name, const Tensor& tensor) {
        ids.push_back(kept.graph.add_input(
            role, name, TensorType::replicated(tensor.dtype, tensor.shape, kept.graph.mesh())));
        kept.inputs[ids.back()] = tensor;
        return ids.back();
      };
      for (size_t i = 0; i < test.inputs.size(); ++i) {
        add(test.inputs[i].role, fmt::format("in{}", i), test.inputs[i]);
      }
      const ValueId largest = add(Role::kRounded, "largest", {DType::kF32, Shape{1}, {5.0}});
      const ValueId rounded =
          add(Role::kRounded, "rounded", random_tensor(DType::kBF16, {48 * 48}, 7));
      const auto made =
          kept.graph.add(kRoundWeights, {ids[first], ids[first + 1], largest, rounded}, {},
                         {"largest.now", "rounded.now"});
      ids.resize(test.inputs.size());
      const int magnitudes = static_cast<int>(fp8_groups(op->name, 2).size());
      ids[test.inputs.size() - magnitudes + kFp8Weights] = made[0];
      ids.push_back(made[1]);
      Attrs attrs = test.attrs;
      attrs.set("kept_weights", true);
      std::vector<std::string> names;
      for (int i = 0; i < outputs; ++i) names.push_back(fmt::format("out{}", i));
      const auto results = kept.graph.add(*op, ids, attrs, names);
      verify(kept.graph, "the test");
      for (const int64_t padding : {0, 3}) {
        const GraphRun want(each.graph, each.inputs, {.row_padding = padding});
        const GraphRun got(kept.graph, kept.inputs, {.row_padding = padding});
        for (int i = 0; i < outputs; ++i) {
          const auto a = want.read(each.graph.nodes()[0].outputs[i]), b = got.read(results[i]);
          ASSERT_EQ(a.size(), b.size());
          double largest = 0;
          for (const double value : a) largest = std::max(largest, std::abs(value));  // no NaN
          for (size_t k = 0; k < a.size(); ++k) {
            const double allowed =
                adds_in_14_bits() ? 0x1p-7 * std::abs(a[k]) + fp8_tolerance() * largest : 0.0;
            ASSERT_TRUE(std::abs(a[k] - b[k]) <= allowed || (std::isnan(a[k]) && std::isnan(b[k])))
                << op->name << " output " << i << "[" << k << "]: " << a[k] << ", " << b[k];
          }
        }
      }
    }
  }
}

// Runs one kernel with operands in buffers as wide as all parts together, side by side or `gap`
// elements apart, and reads the results back.
class PartsTest : public testing::TestWithParam<DType> {
 protected:
  static constexpr int64_t kTokens = 400, kIn = 48;  // enough for several threads
  static constexpr std::array<int64_t, 3> kOut = {64, 18, 30};
  static constexpr int64_t kTotal = 112, kMaxGap = 8;

  struct Matrix {
    Matrix(DType dtype, int64_t rows, int64_t cols, uint32_t stream)
        : dtype(dtype),
          cols(cols),
          data(static_cast<uint8_t*>(test_device().allocate(rows * cols * size_of(dtype)))) {
      GraphRun::fill(view(0, 0, rows, cols), random_tensor(dtype, {rows, cols}, stream).values);
    }
    ~Matrix() { test_device().release(data); }
    Matrix(const Matrix&) = delete;
    Matrix& operator=(const Matrix&) = delete;
    View view(int64_t row, int64_t col, int64_t rows, int64_t num_cols) {
      return {data + (row * cols + col) * size_of(dtype), dtype, Shape{rows, num_cols}, cols};
    }
    DType dtype;
    int64_t cols;
    uint8_t* data;
  };

  static void run(const char* name, KernelCall call) {
    const Kernel& kernel = test_device().kernels.at(name);
    call.stream = test_device().stream;
    const int64_t scratch = kernel.scratch_bytes == nullptr ? 0 : kernel.scratch_bytes(call);
    void* const memory = test_device().allocate(scratch + 64);
    const auto address = reinterpret_cast<uintptr_t>(memory);
    call.scratch = static_cast<char*>(memory) + (64 - address % 64) % 64;
    kernel.run(call);
    test_device().synchronize();
    test_device().release(memory);
  }

  static std::vector<double> values_of(const std::vector<View>& views) {
    std::vector<double> values;
    for (const View& view : views) {
      const std::vector<double> part = GraphRun::values_of(view);
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }

  // Bit for bit on the CPU; on other devices each product may add in its own order.
  static void expect_same(const std::vector<std::vector<double>>& results, DType dtype) {
    if (test_device().is_cpu) {
      EXPECT_TRUE(results[0] == results[1]);
    } else {
      const double tolerance = dtype == DType::kBF16 ? 0x1p-7 : 1e-6;
      expect_close(results[0], results[1], DType::kF32, tolerance, "adjacent");
    }
  }
};

TEST_P(PartsTest, ForwardIsTheSameAdjacentOrApart) {
  std::vector<std::vector<double>> results;
  for (const int64_t gap : {int64_t{0}, kMaxGap}) {
    Matrix x(GetParam(), kTokens, kIn, 1), w(GetParam(), kTotal, kIn, 2);
    Matrix y(GetParam(), kTokens, kTotal + 2 * kMaxGap, 3);
    KernelCall call{.attrs = attrs_of(3, false, false)};
    call.inputs = {x.view(0, 0, kTokens, kIn)};
    int64_t at = 0, y_at = 0;
    for (const int64_t out : kOut) {
      call.inputs.push_back(w.view(at, 0, out, kIn));
      call.outputs.push_back(y.view(0, y_at, kTokens, out));
      at += out;
      y_at += out + gap;
    }
    run("linear", call);
    results.push_back(values_of(call.outputs));
  }
  expect_same(results, GetParam());
}

TEST_P(PartsTest, InputGradientIsTheSameAdjacentOrApart) {
  std::vector<std::vector<double>> results;
  for (const int64_t gap : {int64_t{0}, kMaxGap}) {
    Matrix packed(GetParam(), kTokens, kTotal, 1), dy(GetParam(), kTokens, kTotal + 2 * kMaxGap, 4);
    Matrix w(GetParam(), kTotal, kIn, 2), dx(GetParam(), kTokens, kIn, 3);
    KernelCall call{.attrs = {{"parts", int64_t{3}}}};
    int64_t at = 0, dy_at = 0;
    std::vector<View> weights;
    for (const int64_t out : kOut) {
      const View from = packed.view(0, at, kTokens, out), to = dy.view(0, dy_at, kTokens, out);
      GraphRun::fill(to, GraphRun::values_of(from));
      call.inputs.push_back(to);
      weights.push_back(w.view(at, 0, out, kIn));
      at += out;
      dy_at += out + gap;
    }
    call.inputs.insert(call.inputs.end(), weights.begin(), weights.end());
    call.outputs = {dx.view(0, 0, kTokens, kIn)};
    run("linear_dx", call);
    results.push_back(values_of(call.outputs));
  }
  expect_same(results, GetParam());
}

TEST_P(PartsTest, WeightGradientIsTheSameAdjacentOrApart) {
  std::vector<std::vector<double>> results;
  for (const int64_t gap : {int64_t{0}, int64_t{1}}) {
    Matrix dy(GetParam(), kTokens, kTotal, 1), x(GetParam(), kTokens, kIn, 2);
    Matrix initial(DType::kF32, kTotal, kIn, 3), g(DType::kF32, kTotal + 2, kIn, 4);
    KernelCall call{.attrs = {{"parts", int64_t{3}}}};
    int64_t at = 0, g_at = 0;
    std::vector<View> sums;
    for (const int64_t out : kOut) {
      call.inputs.push_back(dy.view(0, at, kTokens, out));
      sums.push_back(g.view(g_at, 0, out, kIn));
      GraphRun::fill(sums.back(), GraphRun::values_of(initial.view(at, 0, out, kIn)));
      at += out;
      g_at += out + gap;
    }
    call.inputs.push_back(x.view(0, 0, kTokens, kIn));
    call.inputs.insert(call.inputs.end(), sums.begin(), sums.end());
    call.outputs = sums;
    run("linear_dw", call);
    results.push_back(values_of(sums));
  }
  expect_same(results, DType::kF32);
}

TEST_P(PartsTest, BiasGradientIsTheSameAdjacentOrApart) {
  constexpr int64_t kMany = 700;
  std::vector<std::vector<double>> results;
  for (const int64_t gap : {int64_t{0}, int64_t{8}}) {
    Matrix dy(GetParam(), kMany, kTotal, 1), h(DType::kF32, 1, kTotal + 2 * 8, 4);
    KernelCall call{.attrs = {{"parts", int64_t{3}}}};
    int64_t at = 0, h_at = 0;
    for (const int64_t out : kOut) {
      call.inputs.push_back(dy.view(0, at, kMany, out));
      call.outputs.push_back(View::contiguous(h.view(0, h_at, 1, out).data, DType::kF32, {out}));
      GraphRun::fill(call.outputs.back(), random_tensor(DType::kF32, {out}, 5).values);
      at += out;
      h_at += out + gap;
    }
    call.inputs.insert(call.inputs.end(), call.outputs.begin(), call.outputs.end());
    run("linear_db", call);
    results.push_back(values_of(call.outputs));
  }
  expect_same(results, DType::kF32);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, PartsTest, testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

TEST(Linear, LaysPartsSideBySide) {
  const BuiltCase built = build(make_case(DType::kF32, 4, 8, {8, 4, 4}, true), 3);
  const Node& node = built.graph.nodes()[0];
  const Layout layout = kLinear.layout(built.graph.call(node));
  ASSERT_EQ(layout.bundles.size(), 3u);
  EXPECT_TRUE(layout.bundles[0].outputs);
  EXPECT_EQ(layout.bundles[0].dim, 1);
  EXPECT_EQ(layout.bundles[1].operands, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(layout.bundles[2].operands, (std::vector<int>{4, 5, 6}));
  EXPECT_DOUBLE_EQ(kLinear.cost(built.graph.call(node)).flops, 2.0 * 4 * 8 * 16);
}

}  // namespace
}  // namespace skein
