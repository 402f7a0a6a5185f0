// The embedding of a text from the hidden states of its tokens.
//
// Formula  kFirst: of the first token; kLast: of the last; kMean: the mean over tokens; kMax: the
//          largest of each element. The mean divides by max(tokens, 1e-9), as sentence-transformers
//          does. Then, where asked, the first `dim` elements alone, divided by their norm
//          (at least 1e-12, as torch.nn.functional.normalize)
// Numbers  fp32; sums in the order of tokens, in fp64
// Source   sentence-transformers, Pooling and Normalize
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

enum class Pooling : uint8_t { kFirst, kLast, kMean, kMax };

std::string_view pooling_name(Pooling pooling);

// `hidden`: [tokens, size] row by row; `out` gets `out.size()` elements of the pooled vector.
void pool(Pooling pooling, std::span<const float> hidden, int64_t size, std::span<float> out);

void normalize(std::span<float> vector);

}  // namespace skein
