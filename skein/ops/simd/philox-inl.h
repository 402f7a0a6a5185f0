// Philox4x32-10 for several blocks at once: the words of base/numbers/philox.h, bit for bit.
//
// Method  one block per 64-bit lane: a 32x32->64 multiplication reads the low halves of its lanes,
//         so the counter words need no masking between rounds
#if defined(SKEIN_OPS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKEIN_OPS_PHILOX_INL_H_
#undef SKEIN_OPS_PHILOX_INL_H_
#else
#define SKEIN_OPS_PHILOX_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "skein/base/numbers/philox.h"

HWY_BEFORE_NAMESPACE();
namespace skein::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using U64 = hn::ScalableTag<uint64_t>;
using VU64 = hn::Vec<U64>;

// Words that philox_words may write past `count`.
inline constexpr size_t kPhiloxSlack = 4 + 4 * HWY_MAX_BYTES / sizeof(uint64_t);

#if HWY_TARGET == HWY_SCALAR

inline void philox_blocks(uint64_t seed, RandomPurpose purpose, uint32_t stream, uint32_t step,
                          uint64_t first, uint64_t last, uint32_t* words) {
  const Philox philox(seed, purpose, stream, step);
  for (uint64_t block = first; block < last; ++block, words += 4) {
    const Philox::Block four = philox.block(block);
    std::copy(four.begin(), four.end(), words);
  }
}

#else

HWY_INLINE VU64 multiply_low_halves(VU64 a, VU64 b) {
  const hn::Repartition<uint32_t, U64> u32;
  return hn::MulEven(hn::BitCast(u32, a), hn::BitCast(u32, b));
}

// The four words of blocks first .. last - 1, and of some blocks after them.
inline void philox_blocks(uint64_t seed, RandomPurpose purpose, uint32_t stream, uint32_t step,
                          uint64_t first, uint64_t last, uint32_t* words) {
  const U64 d;
  const VU64 factor0 = hn::Set(d, 0xD2511F53u), factor1 = hn::Set(d, 0xCD9E8D57u);
  const VU64 weyl0 = hn::Set(d, 0x9E3779B9u), weyl1 = hn::Set(d, 0xBB67AE85u);
  const VU64 low_half = hn::Set(d, 0xFFFFFFFFu), high2 = hn::Set(d, stream);
  const VU64 high3 = hn::Set(d, step ^ (static_cast<uint32_t>(purpose) << 28));
  VU64 keys0[10], keys1[10];
  keys0[0] = hn::Set(d, seed);
  keys1[0] = hn::ShiftRight<32>(keys0[0]);
  for (int round = 1; round < 10; ++round) {
    keys0[round] = hn::Add(keys0[round - 1], weyl0);
    keys1[round] = hn::Add(keys1[round - 1], weyl1);
  }
  for (uint64_t block = first; block < last; block += hn::Lanes(d)) {
    const VU64 index = hn::Add(hn::Iota(d, 0), hn::Set(d, block));
    VU64 c0 = index, c1 = hn::ShiftRight<32>(index), c2 = high2, c3 = high3;
    HWY_UNROLL(10)
    for (int round = 0; round < 10; ++round) {
      const VU64 product0 = multiply_low_halves(factor0, c0);
      const VU64 product1 = multiply_low_halves(factor1, c2);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), c1), keys0[round]);
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), c3), keys1[round]);
      c1 = product1;
      c3 = product0;
    }
    const VU64 words01 = hn::Or(hn::And(c0, low_half), hn::ShiftLeft<32>(c1));
    const VU64 words23 = hn::Or(hn::And(c2, low_half), hn::ShiftLeft<32>(c3));
    hn::StoreInterleaved2(words01, words23, d, reinterpret_cast<uint64_t*>(words));
    words += 4 * hn::Lanes(d);
  }
}

#endif

// Writes the words of elements first .. first + count - 1 of the stream into `buffer`, which has
// room for count + kPhiloxSlack words, and returns where they begin.
inline const uint32_t* philox_words(uint64_t seed, RandomPurpose purpose, uint32_t stream,
                                    uint32_t step, uint64_t first, size_t count, uint32_t* buffer) {
  philox_blocks(seed, purpose, stream, step, first / 4, (first + count + 3) / 4, buffer);
  return buffer + first % 4;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
