// What a TextEngine takes of its device's memory, known before anything is loaded or allocated.
//
// Bytes    of each arena, as Executor allocates them, to the byte; of several ranks those of each.
//          Beside them a process holds its code, its tokenizer and the texts
// Cost     plans all programs: milliseconds, for a model of 70 B parameters under a second
#pragma once

#include <string>

#include "skein/base/text/json.h"
#include "skein/infer/engine.h"

namespace skein {

struct EngineMemory {
  ServingLayout layout;
  ArenaBytes arena_bytes{};

  int64_t total_bytes() const;
  int64_t cached_tokens() const { return layout.num_pages * layout.page_size; }
};

// `kernels`: of the device, or of a backend that only plans.
EngineMemory engine_memory(const DecoderConfig& model, const EngineOptions& options,
                           const KernelTable& kernels);

// {"weights": bytes, …}, arenas that are not empty, in their order.
OrderedJson engine_memory_json(const EngineMemory& memory);

// "memory 292 MB on each of 2 devices: weights 4.2 MB, cache 268 MB (131072 tokens), …"
std::string engine_memory_text(const EngineMemory& memory, int64_t replicas = 1);

}  // namespace skein
