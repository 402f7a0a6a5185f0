// What the tile instructions of this CPU (AMX) cost beside other work, in nanoseconds of one core:
// the facts that the blocking of products (ops/matmul) and the strips of attention (ops/attention)
// rest on. Best of many rounds, so that what else runs on the machine counts little.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "skein/ops/simd/cpu_kind.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "skein/ops/simd/amx_unit.h"
#endif

namespace skein {
namespace {

#if defined(__x86_64__)

using Unit = tiles::AmxUnit;

// In pages of 4 KiB; bf16 numbers of moderate size, since tiles are slower on them than on zeros.
class Memory {
 public:
  explicit Memory(size_t bytes) : data_(static_cast<char*>(std::aligned_alloc(4096, bytes))) {
    for (size_t i = 0; i < bytes / 2; ++i) {
      reinterpret_cast<uint16_t*>(data_)[i] = static_cast<uint16_t>(0x3f00 + i * 37 % 97);
    }
  }
  ~Memory() { std::free(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  char* data() { return data_; }

 private:
  char* data_;
};

double nanoseconds_of(const auto& body) {
  using Clock = std::chrono::steady_clock;
  constexpr int kCalls = 200;
  double best = 1e30;
  for (int round = 0; round < 200; ++round) {
    const auto begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) body();
    const std::chrono::duration<double, std::nano> taken = Clock::now() - begin;
    best = std::min(best, taken.count() / kCalls);
  }
  return best;
}

// 128 multiply-adds of 512 bits on eight registers, and nothing in memory.
__attribute__((target("avx512f"))) void multiply_vectors() {
#define SKEIN_EIGHT                           \
  "vfmadd213ps %%zmm30, %%zmm31, %%zmm16\n\t" \
  "vfmadd213ps %%zmm30, %%zmm31, %%zmm17\n\t" \
  "vfmadd213ps %%zmm30, %%zmm31, %%zmm18\n\t" \
  "vfmadd213ps %%zmm30, %%zmm31, %%zmm19\n\t" \
  "vfmadd213ps %%zmm30, %%zmm31, %%zmm20\n\t" \
  "vfmadd213ps %%zmm30, %%zmm31, %%zmm21\n\t" \
  "vfmadd213ps %%zmm30, %%zmm31, %%zmm22\n\t" \
  "vfmadd213ps %%zmm30, %%zmm31, %%zmm23\n\t"
  asm volatile(
      "vpxord %%zmm30, %%zmm30, %%zmm30\n\tvpxord %%zmm31, %%zmm31, %%zmm31\n\t"
      ".rept 16\n\t" SKEIN_EIGHT ".endr" ::
          : "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm30",
            "xmm31");
#undef SKEIN_EIGHT
}

void multiply_tiles() {
  Unit::multiply<0, 4, 6>();
  Unit::multiply<1, 4, 7>();
  Unit::multiply<2, 5, 6>();
  Unit::multiply<3, 5, 7>();
}

void load_tiles(const char* at) {
  Unit::load<4>(at, 64);
  Unit::load<5>(at + 1024, 64);
  Unit::load<6>(at + 2048, 64);
  Unit::load<7>(at + 3072, 64);
}

void beside_vectors() {
  const double vectors = nanoseconds_of(multiply_vectors);
  const double products = nanoseconds_of(multiply_tiles);
  const double both = nanoseconds_of([] {
    multiply_tiles();
    multiply_vectors();
  });
  fmt::print(
      "128 multiply-adds of 512 bits {:.1f} ns, 4 products of tiles {:.1f} ns, both {:.1f} ns\n",
      vectors, products, both);
}

// What 32 products take more after vectors alone have worked for a while.
void after_a_while() {
  const auto products = [] {
    for (int i = 0; i < 8; ++i) multiply_tiles();
    _mm_lfence();
  };
  for (const int vectors : {4, 8, 16, 32, 64}) {
    const auto rest = [&] {
      for (int i = 0; i < vectors; ++i) multiply_vectors();
      _mm_lfence();
    };
    const double without = nanoseconds_of(rest), alone = nanoseconds_of(products);
    const double together = nanoseconds_of([&] {
      rest();
      products();
    });
    fmt::print("32 products of tiles after {:4.0f} ns of vectors: {:4.0f} ns more than without\n",
               without, together - without - alone);
  }
}

void from_memory(Memory& memory) {
  for (const int64_t bytes : {16 << 10, 256 << 10}) {
    int64_t at = 0;
    const auto next = [&] {
      at = (at + 4096) % bytes;
      return memory.data() + at;
    };
    const double loaded = nanoseconds_of([&] { load_tiles(next()); });
    const double stored = nanoseconds_of([&] {
      char* to = next();
      Unit::store<0>(to, 64);
      Unit::store<1>(to + 1024, 64);
      Unit::store<2>(to + 2048, 64);
      Unit::store<3>(to + 3072, 64);
    });
    fmt::print("4 tiles somewhere in {} KiB: loaded {:.1f} ns, stored {:.1f} ns\n", bytes >> 10,
               loaded, stored);
  }
}

int run() {
  limit_cpu_kind("auto");
  if (!cpu_uses_amx()) {
    fmt::print("no tiles on this machine\n");
    return 0;
  }
  Memory memory(1 << 20);
  Unit::begin();
  Unit::zero<0>();
  Unit::zero<1>();
  Unit::zero<2>();
  Unit::zero<3>();
  load_tiles(memory.data());
  beside_vectors();
  after_a_while();
  from_memory(memory);
  Unit::end();
  return 0;
}

#else
int run() {
  fmt::print("no tiles on this machine\n");
  return 0;
}
#endif

}  // namespace
}  // namespace skein

int main() { return skein::run(); }
