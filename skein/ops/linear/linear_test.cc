#include "skein/ops/linear/linear.h"

#include "skein/ops/linear/matmul_ceiling.h"
#include "skein/ops/testing/op_harness.h"

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

// Runs one kernel with operands that lie in buffers as wide as all parts together, side by side or
// `gap` elements apart; reads the results back.
class PartsTest : public testing::TestWithParam<DType> {
 protected:
  static constexpr int64_t kTokens = 50, kIn = 48;
  static constexpr std::array<int64_t, 3> kOut = {64, 18, 30};
  static constexpr int64_t kTotal = 112, kMaxGap = 8;

  struct Matrix {
    Matrix(DType dtype, int64_t rows, int64_t cols, uint32_t stream)
        : dtype(dtype), cols(cols), bytes(rows * cols * size_of(dtype)) {
      const Tensor values = random_tensor(dtype, {rows, cols}, stream);
      for (int64_t i = 0; i < rows * cols; ++i) {
        const float value = static_cast<float>(values[i]);
        if (dtype == DType::kF32) std::memcpy(&bytes[i * 4], &value, 4);
        if (dtype == DType::kBF16) {
          const bfloat16 half(value);
          std::memcpy(&bytes[i * 2], &half, 2);
        }
      }
    }
    View view(int64_t row, int64_t col, int64_t rows, int64_t num_cols) {
      return {bytes.data() + (row * cols + col) * size_of(dtype), dtype, Shape{rows, num_cols},
              cols};
    }
    DType dtype;
    int64_t cols;
    std::vector<uint8_t> bytes;
  };

  static void run(const char* name, KernelCall call) {
    const Kernel kernel = cpu_kernels().at(name);
    std::vector<uint8_t> scratch(kernel.scratch_bytes(call) + 64);
    call.scratch = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
    kernel.run(call);
  }
};

TEST_P(PartsTest, ForwardIsTheSameAdjacentOrApart) {
  std::vector<std::vector<uint8_t>> results;
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
    std::vector<uint8_t>& result = results.emplace_back();
    for (const View& part : call.outputs) {
      for (int64_t row = 0; row < kTokens; ++row) {
        const uint8_t* begin = part.as<uint8_t>() + row * part.row_stride * size_of(part.dtype);
        result.insert(result.end(), begin, begin + part.cols() * size_of(part.dtype));
      }
    }
  }
  EXPECT_TRUE(results[0] == results[1]);
}

TEST_P(PartsTest, InputGradientIsTheSameAdjacentOrApart) {
  std::vector<std::vector<uint8_t>> results;
  for (const int64_t gap : {int64_t{0}, kMaxGap}) {
    Matrix packed(GetParam(), kTokens, kTotal, 1), dy(GetParam(), kTokens, kTotal + 2 * kMaxGap, 4);
    Matrix w(GetParam(), kTotal, kIn, 2), dx(GetParam(), kTokens, kIn, 3);
    KernelCall call{.attrs = {{"parts", int64_t{3}}}};
    int64_t at = 0, dy_at = 0;
    std::vector<View> weights;
    for (const int64_t out : kOut) {
      const View from = packed.view(0, at, kTokens, out), to = dy.view(0, dy_at, kTokens, out);
      for (int64_t row = 0; row < kTokens; ++row) {
        const int64_t size = size_of(GetParam());
        std::memcpy(to.as<uint8_t>() + row * to.row_stride * size,
                    from.as<uint8_t>() + row * from.row_stride * size, out * size);
      }
      call.inputs.push_back(to);
      weights.push_back(w.view(at, 0, out, kIn));
      at += out;
      dy_at += out + gap;
    }
    call.inputs.insert(call.inputs.end(), weights.begin(), weights.end());
    call.outputs = {dx.view(0, 0, kTokens, kIn)};
    run("linear_dx", call);
    results.push_back(dx.bytes);
  }
  EXPECT_TRUE(results[0] == results[1]);
}

TEST_P(PartsTest, WeightGradientIsTheSameAdjacentOrApart) {
  std::vector<std::vector<uint8_t>> results;
  for (const int64_t gap : {int64_t{0}, int64_t{1}}) {
    Matrix dy(GetParam(), kTokens, kTotal, 1), x(GetParam(), kTokens, kIn, 2);
    Matrix initial(DType::kF32, kTotal, kIn, 3), g(DType::kF32, kTotal + 2, kIn, 4);
    KernelCall call{.attrs = {{"parts", int64_t{3}}}};
    int64_t at = 0, g_at = 0;
    std::vector<View> sums;
    for (const int64_t out : kOut) {
      call.inputs.push_back(dy.view(0, at, kTokens, out));
      sums.push_back(g.view(g_at, 0, out, kIn));
      std::memcpy(sums.back().data, initial.view(at, 0, out, kIn).data, out * kIn * 4);
      at += out;
      g_at += out + gap;
    }
    call.inputs.push_back(x.view(0, 0, kTokens, kIn));
    call.inputs.insert(call.inputs.end(), sums.begin(), sums.end());
    call.outputs = sums;
    run("linear_dw", call);
    std::vector<uint8_t>& result = results.emplace_back();
    for (const View& sum : sums) {
      result.insert(result.end(), sum.as<uint8_t>(), sum.as<uint8_t>() + sum.num_bytes());
    }
  }
  EXPECT_TRUE(results[0] == results[1]);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, PartsTest, testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

class LinearPlacement : public testing::Test {
 protected:
  // One axis of interest, tp; values [8, 16], [16, 16] or [16].
  ValueId value(const std::string& name, Shape shape, const std::string& placement,
                DType dtype = DType::kF32) {
    TensorType type = TensorType::replicated(dtype, std::move(shape), graph.mesh());
    type.placements[3] = Placement::parse(placement);
    return graph.add_input(Role::kInput, name, type);
  }
  std::string placed(ValueId id) { return graph.type(id).placements[3].to_string(); }

  Graph graph{Mesh::standard(1, 1, 1, 2)};
};

TEST_F(LinearPlacement, FollowsFromXAndW) {
  int count = 0;
  for (const auto& [x, w, y] : std::vector<std::array<std::string, 3>>{{"R", "R", "R"},
                                                                       {"S0", "R", "S0"},
                                                                       {"R", "S0", "S1"},
                                                                       {"S1", "S1", "P"},
                                                                       {"P", "R", "P"}}) {
    const std::string tag = std::to_string(count++);
    const ValueId out =
        linear(graph, value("x" + tag, {8, 16}, x), {value("w" + tag, {16, 16}, w)}, {}, {"y"})[0];
    EXPECT_EQ(placed(out), y) << x << " " << w;
  }
}

TEST_F(LinearPlacement, MayDifferBetweenParts) {
  const ValueId x = value("x", {8, 16}, "R");
  const auto y =
      linear(graph, x, {value("wq", {16, 16}, "S0"), value("wk", {16, 16}, "R")}, {}, {"q", "k"});
  EXPECT_EQ(placed(y[0]), "S1");
  EXPECT_EQ(placed(y[1]), "R");
}

TEST_F(LinearPlacement, OfTheDerivatives) {
  const ValueId x = value("x", {8, 16}, "R"), x0 = value("x0", {8, 16}, "S0");
  const ValueId x1 = value("x1", {8, 16}, "S1"), w0 = value("w0", {16, 16}, "S0");
  const ValueId w = value("w", {16, 16}, "R"), w1 = value("w1", {16, 16}, "S1");
  EXPECT_EQ(placed(linear_dx(graph, {x0}, {w}, "dx")), "S0");
  EXPECT_EQ(placed(linear_dx(graph, {x1}, {w0}, "dx")), "P");
  EXPECT_EQ(placed(linear_dx(graph, {x}, {w1}, "dx")), "S1");
  const ValueId p = value("p", {16, 16}, "P");
  EXPECT_EQ(placed(linear_dw(graph, {x0}, x0, {p})[0]), "P");
  EXPECT_EQ(placed(linear_dw(graph, {x1}, x, {value("g0", {16, 16}, "S0")})[0]), "S0");
  EXPECT_EQ(placed(linear_dw(graph, {x}, x1, {value("g1", {16, 16}, "S1")})[0]), "S1");
  EXPECT_EQ(placed(linear_db(graph, {x0}, {value("h", {16}, "P")})[0]), "P");
  EXPECT_EQ(placed(linear_db(graph, {x1}, {value("h0", {16}, "S0")})[0]), "S0");
}

void expect_error(const std::function<void()>& body, const std::vector<std::string>& words) {
  try {
    body();
    ADD_FAILURE() << "expected an error with '" << words[0] << "'";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalid);
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << "'" << word << "' is not in: " << error.what();
    }
  }
}

TEST_F(LinearPlacement, ErrorsNameTheOperands) {
  const ValueId x = value("x", {8, 16}, "R"), w = value("wq", {24, 18}, "R");
  graph.set_scope("layers.3");
  expect_error([&] { linear(graph, x, {w}, {}, {"y"}); },
               {"[linear] x f32[8, 16] does not match wq f32[24, 18]", "layers.3"});
  const ValueId half = value("half", {24, 16}, "R", DType::kBF16);
  expect_error([&] { linear(graph, x, {half}, {}, {"y"}); }, {"half bf16[24, 16]"});
  const ValueId row = value("row", {16, 16}, "S1");
  expect_error([&] { linear(graph, x, {row}, {}, {"y"}); },
               {"no placement rule for x f32[8, 16] and row f32[16, 16]{tp:S1} on axis tp"});
  const ValueId vector = value("vector", {16}, "R");
  expect_error([&] { linear(graph, x, {vector}, {}, {"y"}); }, {"vector f32[16]", "matrix"});
}

TEST_F(LinearPlacement, BiasOfARowParallelWeightIsASumStillOwed) {
  const ValueId x = value("x", {8, 16}, "S1"), w = value("w", {16, 16}, "S1");
  const ValueId whole = value("b", {16}, "R"), owed = value("owed", {16}, "P");
  expect_error([&] { linear(graph, x, {w}, {whole}, {"y"}); },
               {"b f32[16]", "expected P on axis tp"});
  EXPECT_EQ(placed(linear(graph, x, {w}, {owed}, {"y"})[0]), "P");
}

TEST_F(LinearPlacement, RefusesPartsWhoseInputGradientsDoNotAdd) {
  const ValueId dy = value("dy", {8, 16}, "R"), w1 = value("w1", {16, 16}, "S1");
  const ValueId w = value("w", {16, 16}, "R");
  expect_error([&] { linear_dx(graph, {dy, dy}, {w, w1}, "dx"); }, {"w1", "the other parts give"});
}

TEST_F(LinearPlacement, RefusesAGradientSumThatDoesNotFit) {
  const ValueId dy = value("dy", {8, 16}, "S0"), x = value("x0", {8, 16}, "S0");
  const ValueId sum = value("sum", {16, 16}, "R");
  expect_error([&] { linear_dw(graph, {dy}, x, {sum}); }, {"gradient sum sum", "{tp:P}"});
}

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

TEST(MatmulCeiling, IsAtLeastOneDnnsRate) {
  EXPECT_GT(measure_matmul_ceiling_flops(DType::kF32, 0.05), 1e9);
}

}  // namespace
}  // namespace skein
