#include "skein/comm/channel.h"

#include <fmt/format.h>

namespace skein {

uint64_t message_tag(const Collective& collective) {
  const CollectiveKind kind =
      collective.kind == CollectiveKind::kReceive ? CollectiveKind::kSend : collective.kind;
  return static_cast<uint64_t>(kind) << 8 | static_cast<uint64_t>(collective.dtype);
}

std::string message_text(uint64_t tag, uint64_t bytes) {
  const uint64_t kind = tag >> 8, dtype = tag & 0xff;
  if (kind > static_cast<uint64_t>(CollectiveKind::kBarrier) ||
      dtype > static_cast<uint64_t>(DType::kF64)) {
    return fmt::format("bytes that are no message ({:x}, {} bytes)", tag, bytes);
  }
  return fmt::format("[{}] in {}, a message of {} bytes",
                     collective_name(static_cast<CollectiveKind>(kind)),
                     dtype_name(static_cast<DType>(dtype)), bytes);
}

}  // namespace skein
