// Products of 8-bit operands on CUDA against those on the CPU: the operands are the same numbers,
// so that results differ by the order of sums and what cuBLASLt is asked for is what it takes.
#include <cublasLt.h>
#include <gtest/gtest.h>

#include "skein/ops/linear/linear.h"
#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

struct Product {
  int64_t tokens, in;
  std::vector<int64_t> out;
  bool bias = false, f32_output = false;
  double scale = 1;  // of values and gradients
};

Attrs attrs_of(const OpDef& op, const Product& product) {
  Attrs attrs = {{"parts", static_cast<int64_t>(product.out.size())}, {"fp8", true}};
  if (&op == &kLinear) {
    attrs.set("bias", product.bias);
    attrs.set("f32_output", product.f32_output);
  }
  return attrs;
}

OpCase case_of(const OpDef& op, const Product& product) {
  OpCase test{.op = &op, .attrs = attrs_of(op, product)};
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
  return test;
}

const OpDef* const kOps[] = {&kLinear, &kLinearDx, &kLinearDw};
int num_outputs(const OpDef& op, const Product& product) {
  return &op == &kLinearDx ? 1 : static_cast<int>(product.out.size());
}

Outputs run(const BuiltCase& built, KernelTable kernels, int64_t row_padding) {
  const KernelTable before = std::exchange(test_device().kernels, std::move(kernels));
  const GraphRun run(built.graph, built.inputs, {.row_padding = row_padding});
  test_device().kernels = before;
  Outputs outputs;
  for (const ValueId id : built.graph.nodes()[0].outputs) outputs.push_back(run.read(id));
  return outputs;
}

void expect_same(const OpDef& op, const Product& product, const Outputs& got, const Outputs& want,
                 const std::string& what) {
  const bool bf16 = &op == &kLinearDx || (&op == &kLinear && !product.f32_output);
  for (size_t i = 0; i < want.size(); ++i) {
    expect_close(
        got[i], want[i], bf16 ? DType::kBF16 : DType::kF32, 1e-5,
        fmt::format("{} {} x {} output {}{}", op.name, product.tokens, product.in, i, what));
  }
}

// How many products cuBLASLt multiplied from 8 bits in the first run, with dense rows.
int64_t check_against_cpu(const OpDef& op, const Product& product,
                          const std::vector<int64_t>& paddings) {
  const BuiltCase built = build(case_of(op, product), num_outputs(op, product));
  const KernelTable kernels = test_device().kernels;
  const int64_t before = cuda_emulation::cublas_lt().num_fp8_products;
  const Outputs want = run(built, cpu_kernels(), 0), got = run(built, kernels, 0);
  const int64_t products = cuda_emulation::cublas_lt().num_fp8_products - before;
  expect_same(op, product, got, want, "");
  EXPECT_TRUE(run(built, kernels, 0) == got) << op.name << " differs when it is repeated";
  for (const int64_t padding : paddings) {
    expect_same(op, product, run(built, kernels, padding), want,
                fmt::format(", rows {} apart", padding));
  }
  return products;
}

class Fp8Products : public testing::TestWithParam<const OpDef*> {};

TEST_P(Fp8Products, AreThoseOfTheCpu) {
  for (const Product& product :
       {Product{32, 32, {16, 16, 16, 16, 32, 16, 16, 16}}, Product{64, 32, {32, 16}, true},
        Product{32, 48, {32}, false, true, 1e6}, Product{32, 48, {32}, false, false, 1e-12},
        Product{144, 80, {272}}, Product{16, 272, {16, 144}}}) {
    EXPECT_GT(check_against_cpu(*GetParam(), product, {}), 0);
  }
}

TEST_P(Fp8Products, OfDistantRows) {
  EXPECT_GT(check_against_cpu(*GetParam(), {48, 64, {32, 16}}, {3, 16}), 0);
}

TEST_P(Fp8Products, OfOtherSizesAreOfTheSameNumbers) {
  for (const Product& product :
       {Product{1, 37, {53}}, Product{24, 24, {8, 40}}, Product{33, 21, {7, 9}, true}}) {
    EXPECT_EQ(check_against_cpu(*GetParam(), product, {3}), 0);
  }
}

TEST_P(Fp8Products, HaveTheScaleOfWhatIsNotNan) {
  const Product product{32, 32, {16, 16}};
  OpCase test = case_of(*GetParam(), product);
  test.inputs[0].values[5] = std::nan("");
  const BuiltCase built = build(test, num_outputs(*GetParam(), product));
  const Outputs got = run(built, test_device().kernels, 0), want = run(built, cpu_kernels(), 0);
  int64_t num_nan = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    for (size_t k = 0; k < want[i].size(); ++k) {
      num_nan += std::isnan(want[i][k]);
      EXPECT_EQ(std::isnan(got[i][k]), std::isnan(want[i][k]));
      if (std::isnan(want[i][k])) continue;
      EXPECT_NEAR(got[i][k], want[i][k], 0x1p-7 * std::abs(want[i][k]) + 1e-6);
    }
  }
  EXPECT_GT(num_nan, 0);
}

TEST_P(Fp8Products, WithoutAnAlgorithmAreOurOwn) {
  cuda_emulation::cublas_lt().proposes = false;
  const Product product{48, 80, {16, 32}};
  EXPECT_EQ(check_against_cpu(*GetParam(), product, {}), 0);
  cuda_emulation::cublas_lt() = {};
}

INSTANTIATE_TEST_SUITE_P(Ops, Fp8Products, testing::ValuesIn(kOps),
                         [](const auto& info) { return std::string(info.param->name); });

// Parts that lie as one matrix are one product, and parts that do not are the same numbers.
class Fp8Parts : public testing::TestWithParam<const OpDef*> {
 protected:
  static constexpr int64_t kTokens = 64, kIn = 48;
  static constexpr std::array<int64_t, 3> kOut = {64, 16, 32};

  // A matrix that holds the parts, `gap` rows or columns apart.
  struct Parts {
    Parts(DType dtype, bool below, int64_t rows, int64_t cols, int64_t gap, uint32_t stream) {
      const int64_t total = 112 + 2 * gap;
      const Shape shape = below ? Shape{total, cols} : Shape{rows, total};
      data = test_device().allocate(shape.num_elements() * size_of(dtype));
      const View whole = View::contiguous(data, dtype, shape);
      int64_t at = 0;
      for (size_t i = 0; i < kOut.size(); ++i) {
        View part = whole;
        part.shape = below ? Shape{kOut[i], cols} : Shape{rows, kOut[i]};
        part.data = static_cast<char*>(data) + at * (below ? whole.row_stride : 1) * size_of(dtype);
        GraphRun::fill(part,
                       random_tensor(dtype, part.shape, stream + static_cast<uint32_t>(i)).values);
        views.push_back(part);
        at += kOut[i] + gap;
      }
    }
    ~Parts() { test_device().release(data); }
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;
    void* data;
    std::vector<View> views;
  };

  static void run(const OpDef& op, KernelCall call) {
    const Kernel& kernel = test_device().kernels.at(op.name);
    void* const memory = test_device().allocate(kernel.scratch_bytes(call) + 64);
    const auto address = reinterpret_cast<uintptr_t>(memory);
    call.scratch = static_cast<char*>(memory) + (64 - address % 64) % 64;
    call.stream = test_device().stream;
    kernel.run(call);
    test_device().synchronize();
    test_device().release(memory);
  }
};

TEST_P(Fp8Parts, AreOneProductWhereTheyAreOneMatrix) {
  const OpDef& op = *GetParam();
  std::vector<double> results[2];
  for (const bool apart : {false, true}) {
    const int64_t gap = apart ? 16 : 0;
    const Parts x(DType::kBF16, false, kTokens, kIn, 0, 1), w(DType::kBF16, true, 0, kIn, gap, 10);
    const Parts y(DType::kBF16, false, kTokens, 0, gap, 20), g(DType::kF32, true, 0, kIn, gap, 30);
    View matrix = x.views[0];  // [kTokens, kIn]
    matrix.shape = Shape{kTokens, kIn};
    KernelCall call{.attrs = attrs_of(op, {kTokens, kIn, {1, 1, 1}})};
    const auto add = [&](const std::vector<View>& more) {
      call.inputs.insert(call.inputs.end(), more.begin(), more.end());
    };
    if (&op == &kLinear) add({matrix}), add(w.views), call.outputs = y.views;
    if (&op == &kLinearDx) add(y.views), add(w.views), call.outputs = {matrix};
    if (&op == &kLinearDw) add(y.views), add({matrix}), add(g.views), call.outputs = g.views;
    run(op, call);  // measures
    for (size_t i = 0; i < kOut.size(); ++i) {
      GraphRun::fill(g.views[i], random_tensor(DType::kF32, g.views[i].shape, 30 + i).values);
    }
    if (&op == &kLinearDx) {  // which wrote over nothing that it reads
      GraphRun::fill(matrix, std::vector<double>(kTokens * kIn, 0.0));
    }
    const int64_t before = cuda_emulation::cublas_lt().num_fp8_products;
    run(op, call);
    const int64_t products = cuda_emulation::cublas_lt().num_fp8_products - before;
    EXPECT_EQ(products, apart && &op != &kLinearDx ? 3 : 1);
    for (const View& output : call.outputs) {
      for (const double value : GraphRun::values_of(output)) results[apart].push_back(value);
    }
  }
  const DType dtype = &op == &kLinearDw ? DType::kF32 : DType::kBF16;
  expect_close(results[1], results[0], dtype, 1e-5, "parts apart");
}

INSTANTIATE_TEST_SUITE_P(Ops, Fp8Parts, testing::ValuesIn(kOps),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace skein
