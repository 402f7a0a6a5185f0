#include "skein/prepare/dedup/hashing/minhash_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/prepare/dedup/hashing/minhash_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
// At most 8 lanes: two vectors of them are kMinHashPadding hashes.
using U32 = hn::CappedTag<uint32_t, kMinHashPadding / 2>;
using V = hn::Vec<U32>;

V hashed(V low, V high, V a, V b, V c) {
  const V y = hn::Add(hn::Mul(a, low), b);
  return hn::Mul(c, hn::Xor(hn::Xor(y, hn::ShiftRight<15>(y)), high));
}

// Two vectors of minima stay in registers while all n-grams pass.
void take_minima_of(const uint64_t* ngrams, size_t num_ngrams, const MinHashFactors& factors,
                    uint32_t* minima, size_t num_hashes) {
  const U32 d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < num_hashes; i += 2 * lanes) {
    const size_t j = i + lanes;
    const V a0 = hn::LoadU(d, factors.a + i), a1 = hn::LoadU(d, factors.a + j);
    const V b0 = hn::LoadU(d, factors.b + i), b1 = hn::LoadU(d, factors.b + j);
    const V c0 = hn::LoadU(d, factors.c + i), c1 = hn::LoadU(d, factors.c + j);
    V least0 = hn::LoadU(d, minima + i), least1 = hn::LoadU(d, minima + j);
    for (size_t k = 0; k < num_ngrams; ++k) {
      const V low = hn::Set(d, static_cast<uint32_t>(ngrams[k]));
      const V high = hn::Set(d, static_cast<uint32_t>(ngrams[k] >> 32));
      least0 = hn::Min(least0, hashed(low, high, a0, b0, c0));
      least1 = hn::Min(least1, hashed(low, high, a1, b1, c1));
    }
    hn::StoreU(least0, d, minima + i);
    hn::StoreU(least1, d, minima + j);
  }
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {

HWY_EXPORT(take_minima_of);

void take_minima(std::span<const uint64_t> ngrams, const MinHashFactors& factors,
                 std::span<uint32_t> minima) {
  HWY_DYNAMIC_DISPATCH(take_minima_of)
  (ngrams.data(), ngrams.size(), factors, minima.data(), minima.size());
}

}  // namespace skein
#endif
