// A tensor with memory: where it is, and how far apart its rows are. Does not own the memory.
#pragma once

#include <cstdint>

#include "skein/tensor/dtype.h"
#include "skein/tensor/shape.h"

namespace skein {

struct View {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;             // local
  int64_t row_stride = 0;  // elements from one row of shape.cols() to the next; >= shape.cols()

  static View contiguous(void* data, DType dtype, Shape shape) {
    const int64_t cols = shape.cols();
    return {data, dtype, std::move(shape), cols};
  }

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  int64_t rows() const { return shape.rows(); }
  int64_t cols() const { return shape.cols(); }
  bool is_contiguous() const { return row_stride == cols() || rows() == 1; }
  int64_t num_bytes() const { return shape.num_elements() * size_of(dtype); }
};

}  // namespace skein
