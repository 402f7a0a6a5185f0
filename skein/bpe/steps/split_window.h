// Where the words of 64 bytes of ASCII begin, all at once: a bit a byte.
//
// A window begins where a word begins, so that nothing before it matters. What a byte begins
// follows from the classes of its neighbours, and of the run that it is in:
//
//   letter      begins a word, but behind a letter, and behind what takes it along: with GPT-2's
//               pattern a blank, otherwise white space that is no newline, or a sign that begins a
//               word itself
//   digit       begins one every three (Llama 3), each (Qwen 2), or as a letter does (GPT-2)
//   sign        begins one, but behind a sign or a blank
//   white space of a run, the first begins one, and the last; but with Llama 3's and Qwen 2's
//               pattern what is up to the last newline of the run is one word, and newlines behind
//               a sign belong to it
//   's, 're …   ends where the letters of the contraction do
//
// Cost    some 100 instructions a window, with SSE2; other processors split word by word
// Source  the patterns in split_pattern.h; every result is that of SplitPattern::end_of_word()
#pragma once

#include <cstddef>
#include <cstdint>

namespace skein::bpe {

enum class PatternKind : uint8_t { kGpt2, kLlama3, kQwen2 };

inline constexpr size_t kWindowBytes = 64;

// The starts of words in the kWindowBytes bytes at `window`, which is one itself, as far as they do
// not depend on what is behind these bytes or from the first that is not ASCII on. The word of the
// last start goes on for who knows how long. 1: that is the first word.
uint64_t word_starts(PatternKind kind, const char* window);

// The end of "'s" and the like at `at`, or `at`.
const char* end_of_contraction(const char* at, const char* end, bool ignores_case);

}  // namespace skein::bpe
