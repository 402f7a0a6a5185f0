// xxh3-128 checksums, as 32 hexadecimal digits or as a number.
// Source: https://github.com/Cyan4973/xxHash (canonical big-endian representation, as `xxh128sum`).
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace skein {

std::string xxh3_128_hex(std::span<const std::byte> bytes);

struct Hash128 {
  uint64_t low = 0, high = 0;
  auto operator<=>(const Hash128&) const = default;  // NOLINT(modernize-use-nullptr)
};
Hash128 xxh3_128(std::span<const std::byte> bytes);

// 64-bit hash of a name: keys the random stream of a parameter.
uint64_t hash_name(std::string_view name);

// The same digest, fed piece by piece.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  void update(std::span<const std::byte> bytes);
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace skein
