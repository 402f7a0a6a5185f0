#include "skein/prepare/read/bytes/utf8_simd.h"

#include <arrow/util/utf8.h>

#include <algorithm>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/prepare/read/bytes/utf8_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
bool is_utf8_of(const uint8_t* text, size_t size) {
  arrow::util::InitializeUTF8();
  return arrow::util::ValidateUTF8(text, static_cast<int64_t>(size));
}
#else
namespace hn = hwy::HWY_NAMESPACE;
using ByteTag = hn::FixedTag<uint8_t, 16>;
using ByteVector = hn::Vec<ByteTag>;
constexpr size_t kBlock = 16;

// What two bytes that follow each other can be wrong in, by the halves of both; a bit is an error
// where all three tables have it.
constexpr uint8_t kTooShort = 1 << 0, kTooLong = 1 << 1, kOverlong3 = 1 << 2, kTooLarge = 1 << 3,
                  kSurrogate = 1 << 4, kOverlong2 = 1 << 5, kTooLarge1000 = 1 << 6,
                  kOverlong4 = 1 << 6, kTwoContinue = 1 << 7,
                  kAny = kTooShort | kTooLong | kTwoContinue;
alignas(16) constexpr uint8_t kFirstHigh[16] = {kTooLong,
                                                kTooLong,
                                                kTooLong,
                                                kTooLong,
                                                kTooLong,
                                                kTooLong,
                                                kTooLong,
                                                kTooLong,
                                                kTwoContinue,
                                                kTwoContinue,
                                                kTwoContinue,
                                                kTwoContinue,
                                                kTooShort | kOverlong2,
                                                kTooShort,
                                                kTooShort | kOverlong3 | kSurrogate,
                                                kTooShort | kTooLarge | kTooLarge1000 | kOverlong4};
constexpr uint8_t kLarge = kAny | kTooLarge | kTooLarge1000;
alignas(16) constexpr uint8_t kFirstLow[16] = {kAny | kOverlong3 | kOverlong2 | kOverlong4,
                                               kAny | kOverlong2,
                                               kAny,
                                               kAny,
                                               kAny | kTooLarge,
                                               kLarge,
                                               kLarge,
                                               kLarge,
                                               kLarge,
                                               kLarge,
                                               kLarge,
                                               kLarge,
                                               kLarge,
                                               kLarge | kSurrogate,
                                               kLarge,
                                               kLarge};
constexpr uint8_t kContinues = kTooLong | kOverlong2 | kTwoContinue;
alignas(16) constexpr uint8_t kSecondHigh[16] = {
    kTooShort,
    kTooShort,
    kTooShort,
    kTooShort,
    kTooShort,
    kTooShort,
    kTooShort,
    kTooShort,
    kContinues | kOverlong3 | kTooLarge1000 | kOverlong4,
    kContinues | kOverlong3 | kTooLarge,
    kContinues | kSurrogate | kTooLarge,
    kContinues | kSurrogate | kTooLarge,
    kTooShort,
    kTooShort,
    kTooShort,
    kTooShort};

// Not zero where the bytes of `block`, which come behind those of `before`, are not UTF-8.
ByteVector errors_of(ByteVector block, ByteVector before) {
  const ByteTag d;
  const ByteVector low_half = hn::Set(d, 0x0f);
  const ByteVector first = hn::CombineShiftRightBytes<15>(d, block, before);
  const ByteVector pairs =
      hn::And(hn::And(hn::TableLookupBytes(hn::Load(d, kFirstHigh), hn::ShiftRight<4>(first)),
                      hn::TableLookupBytes(hn::Load(d, kFirstLow), hn::And(first, low_half))),
              hn::TableLookupBytes(hn::Load(d, kSecondHigh), hn::ShiftRight<4>(block)));
  // The third and fourth byte of a character have to continue it, and only they may follow a byte
  // that does.
  const ByteVector third =
      hn::SaturatedSub(hn::CombineShiftRightBytes<14>(d, block, before), hn::Set(d, 0xe0 - 0x80));
  const ByteVector fourth =
      hn::SaturatedSub(hn::CombineShiftRightBytes<13>(d, block, before), hn::Set(d, 0xf0 - 0x80));
  return hn::Xor(hn::And(hn::Or(third, fourth), hn::Set(d, 0x80)), pairs);
}

bool has_bits(ByteVector bytes, uint8_t bits) {
  const ByteTag d;
  return !hn::AllTrue(d, hn::Eq(hn::And(bytes, hn::Set(d, bits)), hn::Zero(d)));
}

bool is_utf8_of(const uint8_t* text, size_t size) {
  constexpr size_t kStep = 4 * kBlock;
  const ByteTag d;
  ByteVector before = hn::Zero(d), errors = hn::Zero(d);
  const auto check = [&](ByteVector block) {
    errors = hn::Or(errors, errors_of(block, before));
    before = block;
  };
  for (; size >= kStep; text += kStep, size -= kStep) {
    const ByteVector a = hn::LoadU(d, text), b = hn::LoadU(d, text + kBlock);
    const ByteVector c = hn::LoadU(d, text + 2 * kBlock), e = hn::LoadU(d, text + 3 * kBlock);
    if (!has_bits(hn::Or(hn::Or(hn::Or(a, b), hn::Or(c, e)), before), 0x80)) continue;
    for (const ByteVector block : {a, b, c, e}) check(block);
  }
  // Zeros behind the text: a character that it ends within is an error.
  alignas(16) uint8_t rest[kStep + kBlock] = {};
  std::copy_n(text, size, rest);
  for (size_t at = 0; at <= size; at += kBlock) check(hn::Load(d, rest + at));
  return !has_bits(errors, 0xff);
}
#endif

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {

HWY_EXPORT(is_utf8_of);

bool is_utf8_simd(std::string_view text) {
  return HWY_DYNAMIC_DISPATCH(is_utf8_of)(reinterpret_cast<const uint8_t*>(text.data()),
                                          text.size());
}

}  // namespace skein
#endif
