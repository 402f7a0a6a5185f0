#include "skein/base/numbers/hash.h"

#include <fmt/format.h>
#include <xxhash.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // the same digests by AVX2 or AVX-512 where there are: 3 times faster
#endif

#include "skein/base/shared/heartbeat.h"

namespace skein {
namespace {
std::string to_hex(XXH128_hash_t hash) {
  return fmt::format("{:016x}{:016x}", static_cast<uint64_t>(hash.high64),
                     static_cast<uint64_t>(hash.low64));
}
}  // namespace

std::string xxh3_128_hex(std::span<const std::byte> bytes) {
  return to_hex(XXH3_128bits(bytes.data(), bytes.size()));
}

Hash128 xxh3_128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

uint64_t hash_name(std::string_view name) { return XXH3_64bits(name.data(), name.size()); }

struct Xxh3Stream::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Xxh3Stream::Xxh3Stream() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->xxh); }
Xxh3Stream::~Xxh3Stream() = default;
// Whatever reads or writes much passes through here.
void Xxh3Stream::update(std::span<const std::byte> bytes) {
  heartbeat::tick();
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}
std::string Xxh3Stream::hex() const { return to_hex(XXH3_128bits_digest(state_->xxh)); }

}  // namespace skein
