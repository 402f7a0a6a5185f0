#include <cstring>

#include "skein/base/error.h"
#include "skein/ir/kernel.h"
#include "skein/ops/chunks.h"

namespace skein {
namespace {

constexpr int64_t kChunkBytes = 256 << 10;

std::shared_ptr<const void> prepare(const KernelCall& call) {
  auto chunks = std::make_shared<ChunkList>(kChunkBytes);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.outputs[i].is_contiguous()) {
      fail(ErrorCode::kInternal, "[fill_zero] operand {} has gaps between its rows", i);
    }
    chunks->add_tensor(call.outputs[i].num_bytes());
  }
  return chunks;
}

void run(const KernelCall& call) {
  const auto& chunks = *static_cast<const ChunkList*>(call.state.get());
  const int64_t num_chunks = chunks.size();
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < num_chunks; ++i) {
    const Chunk chunk = chunks[i];
    std::memset(call.outputs[chunk.tensor].as<uint8_t>() + chunk.begin, 0, chunk.count);
  }
}

}  // namespace

void add_fill_zero_cpu_kernels(KernelTable& table) {
  table["fill_zero"] = {.run = run, .prepare = prepare};
  table["zeros"] = {.run = run, .prepare = prepare};
}

}  // namespace skein
