// Checks a model file of fastText before its library reads it, which trusts every number: sizes,
// kinds and counts that it would compute addresses from.
//
// Format  version 12 or less of fastText 0.9.2, little-endian: its options, a dictionary, the input
//         and the output matrix, each plain or product-quantized
// Errors  std::invalid_argument that says what is wrong
// Source  https://github.com/facebookresearch/fastText: Args::load, Dictionary::load,
//         DenseMatrix::load, QMatrix::load, ProductQuantizer::load
#pragma once

#include <cstddef>
#include <span>

namespace skein {

void check_fasttext_file(std::span<const std::byte> bytes);

}  // namespace skein
