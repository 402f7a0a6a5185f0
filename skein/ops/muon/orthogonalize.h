// The products of Newton and Schulz for one matrix, the same on every device: what its kernels
// multiply, and the scratch in which they keep the factors.
#pragma once

#include <algorithm>
#include <cstdint>

#include "skein/base/text/units.h"
#include "skein/tensor/dtype.h"
#include "skein/tensor/shape.h"

namespace skein {

// Of NewtonSchulz::kSteps iterations.
double orthogonalize_flops(const Shape& matrix);

// A tall matrix is treated as its transpose, without being moved.
struct OrthogonalizeSizes {
  int64_t rows, cols;
  int64_t small, large;  // small <= large
  bool is_tall;

  explicit OrthogonalizeSizes(const Shape& matrix)
      : rows(matrix.dim(0)),
        cols(matrix.dim(1)),
        small(std::min(rows, cols)),
        large(std::max(rows, cols)),
        is_tall(rows > cols) {}
  int64_t gram_elements() const { return small * small; }
  int64_t elements() const { return small * large; }
};

// Where the factors are in scratch, in bytes; what a device needs besides begins at `rest`.
struct OrthogonalizeScratch {
  static constexpr int64_t kAlignment = 256;

  int64_t gram, polynomial, gram_square, product, rest;

  // `dtype`: of the direction. The square of the Gram matrix and the product are sums in f32.
  OrthogonalizeScratch(const OrthogonalizeSizes& sizes, DType dtype)
      : gram(0),
        polynomial(bytes(sizes.gram_elements(), dtype)),
        gram_square(2 * polynomial),
        product(gram_square + bytes(sizes.gram_elements(), DType::kF32)),
        rest(product + bytes(sizes.elements(), DType::kF32)) {}

 private:
  static int64_t bytes(int64_t elements, DType dtype) {
    return round_up(elements * size_of(dtype), kAlignment);
  }
};

}  // namespace skein
