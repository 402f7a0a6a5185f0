#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <vector>

#include "skein/ops/linear/linear.h"
#include "skein/ops/ops.h"
#include "skein/ops/packed_linear/packed_linear.h"
#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

struct Memory {
  explicit Memory(int64_t bytes)
      : data(static_cast<std::byte*>(
            ::operator new(static_cast<size_t>(bytes) + 64, std::align_val_t(64)))) {
    std::memset(data, 0xff, static_cast<size_t>(bytes) + 64);
  }
  ~Memory() { ::operator delete(data, std::align_val_t(64)); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data;
};

void run_kernel(const std::string& op, KernelCall call) {
  const KernelTable kernels = cpu_kernels();
  const Kernel& kernel = kernels.at(op);
  const Memory scratch(kernel.scratch_bytes != nullptr ? kernel.scratch_bytes(call) : 0);
  call.scratch = scratch.data;
  kernel.run(call);
}

void fill(void* data, DType dtype, int64_t count, uint32_t state) {
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    const float value = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
    if (dtype == DType::kF32) static_cast<float*>(data)[i] = value;
    if (dtype == DType::kBF16) static_cast<bfloat16*>(data)[i] = bfloat16(value);
  }
}

// linear itself is judged by linear_test.cc.
TEST(PackedLinear, GivesTheBitsOfLinear) {
  constexpr int64_t kRows = 9, kIn = 70, kOut = 83;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const bool bias : {false, true}) {
      for (const bool f32_output : {false, true}) {
        const DType of_y = f32_output ? DType::kF32 : dtype;
        const Memory x(kRows * kIn * 4), w(kOut * kIn * 4), b(kOut * 4);
        const Memory y(kRows * kOut * 4), want(kRows * kOut * 4);
        const Memory packed(packed_weight_words(dtype, kOut, kIn) * 4);
        fill(x.data, dtype, kRows * kIn, 1);
        fill(w.data, dtype, kOut * kIn, 2);
        fill(b.data, dtype, kOut, 3);
        const View of_x{x.data, dtype, {kRows, kIn}, kIn}, of_w{w.data, dtype, {kOut, kIn}, kIn};
        const View of_b{b.data, dtype, {kOut}, kOut};
        const View of_packed{packed.data,
                             DType::kI32,
                             {packed_weight_words(dtype, kOut, kIn)},
                             packed_weight_words(dtype, kOut, kIn)};
        run_kernel("pack_weight", {.inputs = {of_w}, .outputs = {of_packed}});
        KernelCall call{.inputs = {of_x, of_packed},
                        .outputs = {{y.data, of_y, {kRows, kOut}, kOut}},
                        .attrs = {{"out", kOut}, {"bias", bias}, {"f32_output", f32_output}}};
        KernelCall plain{
            .inputs = {of_x, of_w},
            .outputs = {{want.data, of_y, {kRows, kOut}, kOut}},
            .attrs = {{"parts", int64_t{1}}, {"bias", bias}, {"f32_output", f32_output}}};
        if (bias) {
          call.inputs.push_back(of_b);
          plain.inputs.push_back(of_b);
        }
        run_kernel("packed_linear", call);
        run_kernel("linear", plain);
        EXPECT_EQ(std::memcmp(y.data, want.data, kRows * kOut * size_of(of_y)), 0)
            << dtype_name(dtype) << " bias " << bias << " f32 " << f32_output;
      }
    }
  }
}

TEST(PackedLinear, RefusesWhatIsNotPackedForIt) {
  Graph graph{Mesh()};
  const auto input = [&](const char* name, DType dtype, const Shape& shape) {
    return graph.add_input(Role::kInput, name, TensorType::replicated(dtype, shape, graph.mesh()));
  };
  const ValueId x = input("x", DType::kF32, {3, 8});
  const ValueId packed = input("w", DType::kI32, {packed_weight_words(DType::kF32, 5, 8)});
  EXPECT_EQ(graph.type(packed_linear(graph, x, packed, kNoValue, 5, "y", false)).shape,
            Shape({3, 5}));
  EXPECT_THROW(packed_linear(graph, x, packed, kNoValue, 500, "z", false), Error);
}

}  // namespace
}  // namespace skein
