#include "skein/bpe/steps/split_window.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <bit>
#include <initializer_list>

namespace skein::bpe {
namespace {

// The classes of 64 bytes, a bit each.
struct Window {
  uint64_t letters = 0, digits = 0, spaces = 0, newlines = 0, blanks = 0, apostrophes = 0;
  int size = 0;  // up to the first byte that is not ASCII

  uint64_t inside() const { return size == 64 ? ~uint64_t{0} : (uint64_t{1} << size) - 1; }
  uint64_t signs() const { return inside() & ~(letters | digits | spaces); }
};

#ifdef __SSE2__

Window classify(const char* bytes) {
  Window window;
  uint64_t others = 0;
  for (int i = 0; i < 4; ++i) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * i));
    const auto put = [&](uint64_t& to, __m128i mask) {
      to |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(mask))) << 16 * i;
    };
    // Whether y - first < count, as bytes without sign.
    const auto within = [](__m128i y, int first, int count) {
      const __m128i shifted = _mm_add_epi8(y, _mm_set1_epi8(static_cast<char>(-128 - first)));
      return _mm_cmplt_epi8(shifted, _mm_set1_epi8(static_cast<char>(-128 + count)));
    };
    const auto equals = [&](char c) { return _mm_cmpeq_epi8(x, _mm_set1_epi8(c)); };
    put(window.letters, within(_mm_or_si128(x, _mm_set1_epi8(0x20)), 'a', 26));
    put(window.digits, within(x, '0', 10));
    put(window.blanks, equals(' '));
    put(window.spaces, within(x, '\t', 5));
    put(window.newlines, _mm_or_si128(equals('\n'), equals('\r')));
    put(window.apostrophes, equals('\''));
    put(others, x);
  }
  window.spaces |= window.blanks;
  window.size = std::countr_zero(others);
  const uint64_t inside = window.inside();
  for (uint64_t* mask : {&window.letters, &window.digits, &window.spaces, &window.newlines,
                         &window.blanks, &window.apostrophes}) {
    *mask &= inside;
  }
  return window;
}

#endif

uint64_t behind(uint64_t mask) { return mask << 1; }
uint64_t before(uint64_t mask) { return mask >> 1; }
uint64_t up_to(int bit) { return bit >= 63 ? ~uint64_t{0} : (uint64_t{2} << bit) - 1; }

// The runs of `mask` that begin with a bit of `begins`.
uint64_t runs_from(uint64_t begins, uint64_t mask) { return mask & ~(mask + begins); }

uint64_t starts_of_digits(PatternKind kind, uint64_t digits, uint64_t blanks) {
  if (kind == PatternKind::kGpt2) return digits & ~behind(digits | blanks);
  if (kind == PatternKind::kQwen2) return digits;
  uint64_t all = 0;
  const uint64_t third = digits & behind(digits) & behind(behind(digits));
  for (uint64_t each = digits & ~behind(digits); each != 0;
       each = each << 3 & behind(third) & digits) {
    all |= each;
  }
  return all;
}

// Of white space with Llama 3's and Qwen 2's pattern; `spaces` without newlines behind a sign.
uint64_t starts_of_spaces(uint64_t spaces, uint64_t newlines) {
  const uint64_t others = spaces & ~newlines;
  uint64_t starts = spaces & ~behind(spaces);
  starts |= others & ~before(spaces);  // the last one, which what follows may take along
  for (uint64_t left = others & behind(newlines); left != 0; left &= left - 1) {
    // Behind a newline: it begins a word, but where more newlines follow in the run.
    const int at = std::countr_zero(left);
    const int end = at + std::countr_one(others >> at);
    if (end > 63 || (newlines >> end & 1) == 0) starts |= uint64_t{1} << at;
  }
  return starts;
}

// "'s" is a word, whatever follows it.
uint64_t with_contractions(PatternKind kind, const char* bytes, const Window& window,
                           uint64_t candidates, uint64_t starts) {
  const bool is_gpt2 = kind == PatternKind::kGpt2;
  for (; candidates != 0; candidates &= candidates - 1) {
    const int at = std::countr_zero(candidates);
    if (at + 3 > window.size) return starts & up_to(at);
    const char* const apostrophe = bytes + at;
    const char* const end = end_of_contraction(apostrophe, bytes + window.size, !is_gpt2);
    if (end == apostrophe) continue;
    if (is_gpt2) starts &= ~(uint64_t{2} << at);
    const auto behind_it = static_cast<int>(end - bytes);
    if (behind_it < window.size) starts |= window.letters & uint64_t{1} << behind_it;
  }
  return starts;
}

#ifdef __SSE2__

template <PatternKind kKind>
uint64_t word_starts(const char* bytes) {
  constexpr bool kIsGpt2 = kKind == PatternKind::kGpt2;
  const Window window = classify(bytes);
  if (window.size < 8) return 1;  // not worth more
  const uint64_t signs = window.signs(), letters = window.letters;
  const uint64_t first_signs = signs & ~behind(signs | window.blanks);
  uint64_t spaces = window.spaces, starts = 0;
  if (kIsGpt2) {
    starts = letters & ~behind(letters | window.blanks);
    starts |= spaces & ~(behind(spaces) & before(spaces));
  } else {
    const uint64_t taken = runs_from(behind(signs) & window.newlines, window.newlines);
    spaces &= ~taken;
    starts = letters & ~behind(letters | (window.spaces & ~window.newlines) | first_signs);
    starts |= starts_of_spaces(spaces, window.newlines & ~taken);
  }
  starts |= first_signs | starts_of_digits(kKind, window.digits, window.blanks);
  // Of white space at the end only the beginning is certain.
  const int run = std::countl_one(window.spaces << (64 - window.size));
  if (run == window.size) {
    starts = 1;
  } else if (run > 0) {
    const uint64_t last = spaces & ~up_to(window.size - run - 1);
    starts &= up_to(last == 0 ? window.size - run - 1 : std::countr_zero(last));
  }
  const uint64_t apostrophes = window.apostrophes & first_signs & before(letters);
  if (apostrophes != 0) {
    starts = with_contractions(kKind, bytes, window, apostrophes, starts);
  }
  return starts | 1;
}

#endif

}  // namespace

uint64_t word_starts(PatternKind kind, const char* window) {
#ifdef __SSE2__
  switch (kind) {
    case PatternKind::kGpt2:
      return word_starts<PatternKind::kGpt2>(window);
    case PatternKind::kLlama3:
      return word_starts<PatternKind::kLlama3>(window);
    case PatternKind::kQwen2:
      return word_starts<PatternKind::kQwen2>(window);
  }
#endif
  (void)kind, (void)window;
  return 1;
}

const char* end_of_contraction(const char* at, const char* end, bool ignores_case) {
  if (*at != '\'' || end - at < 2) return at;
  const auto folded = [&](int i) {
    const char c = at[i];
    return ignores_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  };
  const char first = folded(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if (end - at < 3) return at;
  // U+017F, the long s, is an s to those who ignore case.
  if (ignores_case && at[1] == '\xc5' && at[2] == '\xbf') return at + 3;
  const char second = folded(2);
  const bool is_one = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                      (first == 'l' && second == 'l');
  return is_one ? at + 3 : at;
}

}  // namespace skein::bpe
