// Many parameters' AdamW in one launch against each by itself.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "skein/ops/adamw/adamw.h"
#include "tests/cuda/device_matrix.h"
#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

// A row of small positive numbers, as second moments are, `offset` elements behind an address that
// packs have.
std::unique_ptr<DeviceMatrix> positive_row(DType dtype, int64_t count, int64_t offset,
                                           uint32_t stream) {
  auto row = std::make_unique<DeviceMatrix>(dtype, 1, count, offset, 0, stream);
  std::vector<double> values = row->values();
  for (double& value : values) value = 0.1 * std::abs(value);
  GraphRun::fill(row->view(), values);
  return row;
}

// Parameters of many sizes: of two dtypes, some at addresses that packs do not have.
struct Parameters {
  explicit Parameters(DType moments) {
    scalars.push_back(positive_row(DType::kF32, 1, 0, 1));
    scalars.push_back(positive_row(DType::kF32, 1, 0, 2));
    scalars.push_back(positive_row(DType::kI32, 1, 0, 3));
    *scalars[2]->view().as<int32_t>() = 7;
    for (int i = 0; i < 300; ++i) {
      const int64_t count = i == 17 ? 40'000 : 1 + i * 37 % 500 * (i % 3 == 0 ? 16 : 1);
      const DType weight = i % 5 == 0 ? DType::kF32 : DType::kBF16;
      KernelCall call{.attrs = {{"beta1", 0.9},
                                {"beta2", 0.95},
                                {"epsilon", 1e-8},
                                {"weight_decay", 0.01 * (i % 4)},
                                {"stochastic_rounding", weight == DType::kBF16},
                                {"seed", int64_t{42}},
                                {"stream", int64_t{100} + i}}};
      for (const DType dtype : {weight, DType::kF32, moments, moments}) {
        const auto stream = static_cast<uint32_t>(10 + memory.size());
        memory.push_back(positive_row(dtype, count, i % 7 == 0 ? 1 : 0, stream));
        call.inputs.push_back(memory.back()->view());
        call.outputs.push_back(memory.back()->view());
      }
      call.inputs.emplace_back();
      for (const auto& scalar : scalars) call.inputs.push_back(scalar->view());
      call.stream = test_device().stream;
      calls.push_back(std::move(call));
    }
  }
  Outputs values() const {
    test_device().synchronize();
    Outputs values;
    for (const auto& one : memory) values.push_back(one->values());
    return values;
  }

  std::vector<std::unique_ptr<DeviceMatrix>> scalars, memory;
  std::vector<KernelCall> calls;
};

TEST(UpdatesTogether, HaveTheBitsOfEach) {
  const Kernel& kernel = test_device().kernels.at("adamw");
  ASSERT_NE(kernel.run_together, nullptr);
  for (const DType moments : {DType::kF32, DType::kBF16}) {
    const Parameters alone(moments), together(moments);
    ASSERT_TRUE(alone.values() == together.values());
    std::vector<const KernelCall*> calls;
    for (const KernelCall& call : alone.calls) kernel.run(call);
    for (const KernelCall& call : together.calls) calls.push_back(&call);
    kernel.run_together(calls);
    EXPECT_TRUE(alone.values() == together.values()) << dtype_name(moments);
  }
}

}  // namespace
}  // namespace skein
