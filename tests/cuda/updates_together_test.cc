// Many parameters' AdamW in one launch against each by itself.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "skein/ops/adamw/adamw.h"
#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

class Memory {
 public:
  Memory(DType dtype, int64_t count, int64_t offset, uint32_t stream)
      : bytes_((count + offset) * size_of(dtype)),
        data_(static_cast<char*>(test_device().allocate(bytes_))),
        view_(View::contiguous(data_ + offset * size_of(dtype), dtype, Shape{count})) {
    std::memset(data_, 0, static_cast<size_t>(bytes_));
    Tensor values = random_tensor(dtype, {count}, stream, 0.1);
    for (double& value : values.values) value = round_to(dtype, std::abs(value));
    GraphRun::fill(view_, values.values);
  }
  ~Memory() { test_device().release(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  const View& view() const { return view_; }
  std::vector<double> values() const { return GraphRun::values_of(view_); }

 private:
  int64_t bytes_;
  char* data_;
  View view_;
};

// Parameters of many sizes: of two dtypes, some at addresses that packs do not have.
struct Parameters {
  explicit Parameters(DType moments) {
    scalars.push_back(std::make_unique<Memory>(DType::kF32, 1, 0, 1));
    scalars.push_back(std::make_unique<Memory>(DType::kF32, 1, 0, 2));
    scalars.push_back(std::make_unique<Memory>(DType::kI32, 1, 0, 3));
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
        memory.push_back(std::make_unique<Memory>(dtype, count, i % 7 == 0 ? 1 : 0, stream));
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

  std::vector<std::unique_ptr<Memory>> scalars, memory;
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
