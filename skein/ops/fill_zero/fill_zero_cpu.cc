#include <cstring>

#include "skein/base/error.h"
#include "skein/ir/kernel.h"
#include "skein/ops/segments.h"

namespace skein {
namespace {

constexpr int64_t kSegmentBytes = 256 << 10;

std::shared_ptr<const void> prepare(const KernelCall& call) {
  auto segments = std::make_shared<SegmentList>(kSegmentBytes);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.outputs[i].is_contiguous()) {
      fail(ErrorCode::kInternal, "[fill_zero] operand {} has gaps between its rows", i);
    }
    segments->add_tensor(call.outputs[i].num_bytes());
  }
  return segments;
}

void run(const KernelCall& call) {
  const auto& segments = *static_cast<const SegmentList*>(call.state.get());
  const int64_t num_segments = segments.size();
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < num_segments; ++i) {
    const TensorSegment segment = segments[i];
    std::memset(call.outputs[segment.tensor].as<uint8_t>() + segment.begin, 0, segment.count);
  }
}

}  // namespace

void add_fill_zero_cpu_kernels(KernelTable& table) {
  table["fill_zero"] = {.run = run, .prepare = prepare};
  table["zeros"] = {.run = run, .prepare = prepare};
}

}  // namespace skein
