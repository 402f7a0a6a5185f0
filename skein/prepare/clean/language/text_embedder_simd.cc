#include "skein/prepare/clean/language/text_embedder_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/prepare/clean/language/text_embedder_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
void mark_blanks_of(const uint8_t* text, size_t size, uint8_t* blanks) {
  for (size_t i = 0; i < size; i += 8) {
    blanks[i / 8] = 0;
    for (size_t j = 0; j < 8; ++j) {
      const uint8_t c = text[i + j];
      blanks[i / 8] |= (c == ' ' || c == 0 || (c >= '\t' && c <= '\r')) << j;
    }
  }
}
#else
void mark_blanks_of(const uint8_t* text, size_t size, uint8_t* blanks) {
  const hn::CappedTag<uint8_t, kTextPadding> d;
  for (size_t i = 0; i < size; i += hn::Lanes(d)) {
    const auto bytes = hn::LoadU(d, text + i);
    const auto is_space = hn::Or(hn::Eq(bytes, hn::Set(d, ' ')), hn::Eq(bytes, hn::Zero(d)));
    const auto from_tab = hn::Sub(bytes, hn::Set(d, '\t'));
    const auto is_control = hn::Eq(hn::Min(from_tab, hn::Set(d, '\r' - '\t')), from_tab);
    hn::StoreMaskBits(d, hn::Or(is_space, is_control), blanks + i / 8);
  }
}
#endif

// Columns stay in registers while all rows pass.
void add_rows_of(const float* matrix, int64_t dim, const int32_t* rows, size_t num_rows,
                 float* sum) {
  const hn::CappedTag<float, 8> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= dim; i += 2 * lanes) {
    auto first = hn::LoadU(d, sum + i), second = hn::LoadU(d, sum + i + lanes);
    for (size_t k = 0; k < num_rows; ++k) {
      const float* row = matrix + rows[k] * dim + i;
      first = hn::Add(first, hn::LoadU(d, row));
      second = hn::Add(second, hn::LoadU(d, row + lanes));
    }
    hn::StoreU(first, d, sum + i);
    hn::StoreU(second, d, sum + i + lanes);
  }
  for (; i < dim; ++i) {
    for (size_t k = 0; k < num_rows; ++k) sum[i] += matrix[rows[k] * dim + i];
  }
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {

HWY_EXPORT(mark_blanks_of);
HWY_EXPORT(add_rows_of);

void mark_blanks(const char* text, size_t size, uint8_t* blanks) {
  HWY_DYNAMIC_DISPATCH(mark_blanks_of)(reinterpret_cast<const uint8_t*>(text), size, blanks);
}

void add_rows(const float* matrix, int64_t dim, const int32_t* rows, size_t num_rows, float* sum) {
  HWY_DYNAMIC_DISPATCH(add_rows_of)(matrix, dim, rows, num_rows, sum);
}

}  // namespace skein
#endif
