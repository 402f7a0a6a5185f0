#include "skein/base/error.h"
#include "skein/ir/kernel.h"
#include "skein/ops/chunks.h"

namespace skein {
namespace {

constexpr int64_t kChunk = 64 << 10;

std::shared_ptr<const void> prepare(const KernelCall& call) {
  auto chunks = std::make_shared<ChunkList>(kChunk);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.outputs[i].is_contiguous()) {
      fail(ErrorCode::kInternal, "[fold] operand {} has gaps between its rows", i);
    }
    if (i % 2 == 0) chunks->add_tensor(call.outputs[i].shape.num_elements());
  }
  return chunks;
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
  const auto& chunks = *static_cast<const ChunkList*>(call.state.get());
  const bool merges = call.attrs.text("mode") == "merge";
  const int64_t num_chunks = chunks.size();
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < num_chunks; ++i) {
    const Chunk chunk = chunks[i];
    float* level = call.outputs[2 * chunk.tensor].as<float>() + chunk.begin;
    float* gradient = call.outputs[2 * chunk.tensor + 1].as<float>() + chunk.begin;
    merges ? merge(level, gradient, chunk.count) : push(level, gradient, chunk.count);
  }
}

}  // namespace

void add_fold_cpu_kernels(KernelTable& table) { table["fold"] = {.run = run, .prepare = prepare}; }

}  // namespace skein
