// Hopper's wgmma on the CPU: 64 x N x 16 in bf16 with fp32 sums, left operand from registers or,
// as the right one, from shared memory by the descriptor that the GPU would read, with its swizzle,
// and the lanes that PTX documents. What is asked for runs at the wait: who reads sums earlier sees
// the old ones, and who overwrites shared memory earlier spoils the product.
//
// Source  PTX ISA 9.0, "Register Fragments for wgmma.mma_async", "Matrix Descriptor Format",
//         "Strides", "Swizzling Modes"
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "cuda_runtime.h"

namespace cuda_emulation {

[[noreturn]] void die(const char* what);

// A GPU's shared memory has 18-bit addresses, and descriptors hold those alone. shared_address()
// keeps the low 18 bits of a pointer, and remembers the pointer. at_shared() restores the high
// bits: dynamic memory begins at a multiple of 2^18, so an address of it is an offset; statically
// declared memory takes less than half of 2^18, so its pointer is the nearest to the remembered
// pointer.
//
// So a kernel may not mix the two kinds: a descriptor of one kind is wrong once shared_address()
// was called for the other. The remembered pointer is global because a descriptor has no bits for
// it.
constexpr uintptr_t kSharedWindow = uintptr_t{1} << 18;
inline const char*& last_shared() {
  static const char* last = nullptr;
  return last;
}
inline uint32_t shared_address(const void* data) {
  last_shared() = static_cast<const char*>(data);
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(data) % kSharedWindow);
}
inline const char* at_shared(uint32_t address) {
  const auto* const dynamic = static_cast<const char*>(dynamic_memory(0));
  if (reinterpret_cast<uintptr_t>(last_shared()) / kSharedWindow ==
      reinterpret_cast<uintptr_t>(dynamic) / kSharedWindow) {
    return dynamic + address;
  }
  const auto last = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(last_shared()));
  const auto distance = static_cast<intptr_t>((address - last) % kSharedWindow);
  const bool before = distance >= static_cast<intptr_t>(kSharedWindow / 2);
  return last_shared() + distance - (before ? static_cast<intptr_t>(kSharedWindow) : 0);
}

inline float bf16_at(const char* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return __uint_as_float(static_cast<unsigned>(bits) << 16);
}

// Element [k, n] of the right operand of a descriptor.
template <bool kTransposed>
float right_element(uint64_t descriptor, uint32_t k, uint32_t n) {
  const auto field = [&](int first) {
    return static_cast<uint32_t>(descriptor >> first & 0x3fff) << 4;
  };
  if (descriptor >> 62 != 1) die("wgmma: a descriptor without the swizzle of 128 bytes");
  if ((descriptor >> 49 & 7) != 0) die("wgmma: a descriptor with a base offset");
  const uint32_t leading = field(16), stride = field(32);
  const uint32_t offset = kTransposed
                              ? n / 8 * stride + n % 8 * 128 + k * 2
                              : n / 64 * leading + n % 64 * 2 + k / 8 * stride + k % 8 * 128;
  const uint32_t address = field(0) + offset;
  return bf16_at(at_shared((address ^ (address >> 3 & 0x70)) % kSharedWindow));
}

// Element [row, k] of the left operand of a descriptor: as the right one of transposed rows.
inline float left_element(uint64_t descriptor, uint32_t row, uint32_t k) {
  return right_element<true>(descriptor, k, row);
}

struct WgmmaQueue {
  bool fenced = false;
  std::vector<std::function<void()>> open;
  std::deque<std::vector<std::function<void()>>> committed;
};
inline WgmmaQueue& wgmma_queue() {
  static WgmmaQueue of_threads[1024];
  return of_threads[threadIdx.x];
}
inline void wgmma_fence() { wgmma_queue().fenced = true; }
inline void wgmma_commit() {
  WgmmaQueue& queue = wgmma_queue();
  queue.committed.push_back(std::move(queue.open));
  queue.open.clear();
}
inline void wgmma_wait(size_t pending) {
  WgmmaQueue& queue = wgmma_queue();
  if (!queue.open.empty()) die("wgmma: a wait for products that were not committed");
  while (queue.committed.size() > pending) {
    for (const auto& product : queue.committed.front()) product();
    queue.committed.pop_front();
  }
  queue.fenced = false;
}

template <unsigned kCols>
struct WgmmaTiles {
  float left[16][16], right[16][kCols];
};
template <unsigned kCols>
WgmmaTiles<kCols>& tiles_of_warp() {
  static WgmmaTiles<kCols> of_warps[32];
  return of_warps[threadIdx.x / 32];
}

// With the left tile in place.
template <bool kTransposed, int count>
void run_wgmma(float (&sums)[count], uint64_t right, bool add) {
  constexpr unsigned kCols = count * 2;
  WgmmaTiles<kCols>& tiles = tiles_of_warp<kCols>();
  const unsigned row = static_cast<unsigned>(lane()) / 4;
  const unsigned first_col = static_cast<unsigned>(lane()) % 4 * 2;
  for (auto i = static_cast<unsigned>(lane()); i < 16 * kCols; i += 32) {
    tiles.right[i / kCols][i % kCols] = right_element<kTransposed>(right, i / kCols, i % kCols);
  }
  wait_for_warp();
  for (unsigned i = 0; i < count; ++i) {
    const unsigned col = i / 4 * 8 + first_col + i % 2;
    float sum = add ? sums[i] : 0;
    for (unsigned k = 0; k < 16; ++k) {
      sum += tiles.left[row + i / 2 % 2 * 8][k] * tiles.right[k][col];
    }
    sums[i] = sum;
  }
  wait_for_warp();
}

template <bool kTransposed, int count>
void wgmma(float (&sums)[count], const uint32_t* left, uint64_t right, bool add) {
  WgmmaQueue& queue = wgmma_queue();
  if (!queue.fenced) die("wgmma: a product without a fence before it");
  struct Words {
    uint32_t at[4];
  };
  queue.open.push_back([&sums, words = Words{{left[0], left[1], left[2], left[3]}}, right, add] {
    auto& tiles = tiles_of_warp<count * 2>();
    const unsigned row = static_cast<unsigned>(lane()) / 4;
    const unsigned first_col = static_cast<unsigned>(lane()) % 4 * 2;
    for (unsigned word = 0; word < 4; ++word) {
      for (unsigned half = 0; half < 2; ++half) {
        tiles.left[row + word % 2 * 8][word / 2 * 8 + first_col + half] =
            __uint_as_float(words.at[word] >> 16 * half << 16);
      }
    }
    run_wgmma<kTransposed>(sums, right, add);
  });
}
template <bool kTransposed, int count>
void wgmma(float (&sums)[count], uint64_t left, uint64_t right, bool add) {
  WgmmaQueue& queue = wgmma_queue();
  if (!queue.fenced) die("wgmma: a product without a fence before it");
  queue.open.push_back([&sums, left, right, add] {
    auto& tiles = tiles_of_warp<count * 2>();
    const unsigned first_row = threadIdx.x / 32 % 4 * 16;
    for (auto i = static_cast<unsigned>(lane()); i < 16 * 16; i += 32) {
      tiles.left[i / 16][i % 16] = left_element(left, first_row + i / 16, i % 16);
    }
    run_wgmma<kTransposed>(sums, right, add);
  });
}

}  // namespace cuda_emulation
