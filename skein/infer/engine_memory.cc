#include "skein/infer/engine_memory.h"

#include <fmt/format.h>

#include <numeric>

#include "skein/base/text/units.h"

namespace skein {

int64_t EngineMemory::total_bytes() const {
  return std::accumulate(arena_bytes.begin(), arena_bytes.end(), int64_t{0});
}

EngineMemory engine_memory(const DecoderConfig& model, const EngineOptions& options,
                           const KernelTable& kernels) {
  EngineMemory memory;
  memory.layout = engine_layout(model, options);
  memory.arena_bytes =
      serving_programs(model, options.compute_dtype, memory.layout, kernels).arena_bytes;
  return memory;
}

OrderedJson engine_memory_json(const EngineMemory& memory) {
  OrderedJson json = OrderedJson::object();
  for (size_t i = 0; i < memory.arena_bytes.size(); ++i) {
    if (memory.arena_bytes[i] == 0) continue;
    json[std::string(arena_name(static_cast<Arena>(i)))] = memory.arena_bytes[i];
  }
  return json;
}

std::string engine_memory_text(const EngineMemory& memory, int64_t replicas) {
  std::string text = fmt::format("memory {}", format_bytes(memory.total_bytes()));
  const int64_t devices = memory.layout.mesh.num_ranks() * replicas;
  if (devices > 1) text += fmt::format(" on each of {} devices", devices);
  const char* separator = ": ";
  for (size_t i = 0; i < memory.arena_bytes.size(); ++i) {
    const auto arena = static_cast<Arena>(i);
    if (memory.arena_bytes[i] == 0) continue;
    text +=
        fmt::format("{}{} {}", separator, arena_name(arena), format_bytes(memory.arena_bytes[i]));
    if (arena == Arena::kCache) text += fmt::format(" ({} tokens)", memory.cached_tokens());
    separator = ", ";
  }
  return text;
}

}  // namespace skein
