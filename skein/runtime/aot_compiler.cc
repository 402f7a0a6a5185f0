#include "skein/runtime/aot_compiler.h"

namespace skein {

int64_t CompiledCollective::sent_bytes() const {
  if (kind == "all-reduce") return 2 * (bytes - bytes / ranks);
  if (kind == "reduce-scatter") return bytes * (ranks - 1);
  if (kind == "collective-permute" || kind == "collective-broadcast") return bytes;
  return bytes - bytes / ranks;  // all-gather, all-to-all
}

}  // namespace skein
