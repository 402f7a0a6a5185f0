#include "skein/base/error.h"
#include "skein/ir/kernel.h"
#include "skein/ops/segments.h"

namespace skein {
namespace {

constexpr int64_t kSegmentElements = 64 << 10;

std::shared_ptr<const void> prepare(const KernelCall& call) {
  auto segments = std::make_shared<SegmentList>(kSegmentElements);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.outputs[i].is_contiguous()) {
      fail(ErrorCode::kInternal, "[fold] operand {} has gaps between its rows", i);
    }
    if (i % 2 == 0) segments->add_tensor(call.outputs[i].shape.num_elements());
  }
  return segments;
}

void push(float* __restrict level, float* __restrict gradient, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    level[i] = gradient[i];
    gradient[i] = 0;
  }
}

void merge(const float* __restrict level, float* __restrict gradient, int64_t count) {
  for (int64_t i = 0; i < count; ++i) gradient[i] = level[i] + gradient[i];
}

void run(const KernelCall& call) {
  const auto& segments = *static_cast<const SegmentList*>(call.state.get());
  const bool merges = call.attrs.text("mode") == "merge";
  const int64_t num_segments = segments.size();
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < num_segments; ++i) {
    const TensorSegment segment = segments[i];
    float* level = call.outputs[2 * segment.tensor].as<float>() + segment.begin;
    float* gradient = call.outputs[2 * segment.tensor + 1].as<float>() + segment.begin;
    merges ? merge(level, gradient, segment.count) : push(level, gradient, segment.count);
  }
}

}  // namespace

void add_fold_cpu_kernels(KernelTable& table) { table["fold"] = {.run = run, .prepare = prepare}; }

}  // namespace skein
