// The inner loops of TextEmbedder, for whatever vectors the processor has.
#pragma once

#include <cstddef>
#include <cstdint>

namespace skein {

// So many bytes behind a text may be read, and as many bits behind its own are written.
inline constexpr size_t kTextPadding = 64;

// Sets a bit of `blanks`, the lowest of a byte first, for each byte of `text` that ends a word to
// fastText, and clears the others.
void mark_blanks(const char* text, size_t size, uint8_t* blanks);

// sum += each of `rows` of a matrix of `dim` columns, in this order in every column.
void add_rows(const float* matrix, int64_t dim, const int32_t* rows, size_t num_rows, float* sum);

}  // namespace skein
