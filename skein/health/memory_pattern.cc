#include "skein/health/memory_pattern.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/machine/clock.h"
#include "skein/base/text/units.h"
#include "skein/runtime/device_buffer.h"
#include "skein/runtime/host_memory.h"

namespace skein {
namespace {

constexpr int64_t kPiece = int64_t{1} << 20;  // that the host makes and compares at once
constexpr int64_t kWords = kPiece / 8;

// splitmix64 (Steele, Lea and Flood 2014)
uint64_t hash_of(uint64_t place) {
  uint64_t z = place + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

void draw(std::vector<uint64_t>& words, int64_t piece, uint64_t flip) {
  for (int64_t i = 0; i < kWords; ++i) {
    words[static_cast<size_t>(i)] = hash_of(static_cast<uint64_t>(piece * kWords + i)) ^ flip;
  }
}

int64_t free_bytes(const Device& device) {
  if (const auto own = device.own_memory()) return own->free_bytes;
  const HostMemory host = read_host_memory();
  const MemoryLimit* limit = host.tightest();
  return limit == nullptr ? INT64_MAX : limit->free_bytes;
}

}  // namespace

CheckResult check_memory_pattern(Device& device, int64_t bytes) {
  const int64_t free = free_bytes(device);
  const int64_t pieces = std::min(bytes, free / 4) / kPiece;
  CheckResult result;
  if (pieces == 0) {
    result.health = Health::kDoubtful;
    result.found = fmt::format("{} free: too little to write a pattern to", format_bytes(free));
    return result;
  }
  const auto start = Clock::now();
  const DeviceBuffer memory(device, pieces * kPiece, "the check of memory");
  std::vector<uint64_t> words(kWords), read(kWords);
  for (const uint64_t flip : {uint64_t{0}, ~uint64_t{0}}) {
    const auto at = [&](int64_t piece) {
      return static_cast<char*>(memory.data()) + piece * kPiece;
    };
    for (int64_t piece = 0; piece < pieces; ++piece) {
      draw(words, piece, flip);
      device.upload(at(piece), words.data(), kPiece);
    }
    for (int64_t piece = 0; piece < pieces; ++piece) {
      draw(words, piece, flip);
      device.download(read.data(), at(piece), kPiece);
      if (read == words) continue;
      const auto wrong = std::mismatch(read.begin(), read.end(), words.begin());
      result.health = Health::kSick;
      result.found =
          fmt::format("{:016x} at byte {} of {}", *wrong.first,
                      piece * kPiece + 8 * (wrong.first - read.begin()), pieces * kPiece);
      result.expected = fmt::format("{:016x}", *wrong.second);
      result.advice = "Memory loses bits: take the machine out of service";
      return result;
    }
  }
  const double passed = 4 * static_cast<double>(pieces * kPiece);
  result.rate = passed / seconds_since(start);
  result.unit = "B/s";
  result.found = fmt::format(
      "{}, {:.1f} % of the free memory, twice as written", format_bytes(pieces * kPiece),
      100 * static_cast<double>(pieces * kPiece) / static_cast<double>(free));
  return result;
}

}  // namespace skein
