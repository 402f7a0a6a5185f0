// A copy of rows of bytes from one place to another.
#pragma once

#include <cstdint>

#include "skein/tensor/view.h"

namespace skein {

struct RowCopy {
  char* to = nullptr;
  int64_t to_stride = 0;  // bytes, as everything here
  const char* from = nullptr;
  int64_t from_stride = 0;
  int64_t rows = 1;
  int64_t row_bytes = 0;

  static RowCopy dense(char* to, const char* from, int64_t bytes) {
    return {to, bytes, from, bytes, 1, bytes};
  }
  // Copies a view's rows, which may have gaps, to rows without gaps.
  static RowCopy pack(char* to, const View& from) {
    const int64_t size = size_of(from.dtype), row_bytes = from.cols() * size;
    return {to, row_bytes, from.as<const char>(), from.row_stride * size, from.rows(), row_bytes};
  }
  static RowCopy unpack(const View& to, const char* from) {
    const int64_t size = size_of(to.dtype), row_bytes = to.cols() * size;
    return {to.as<char>(), to.row_stride * size, from, row_bytes, to.rows(), row_bytes};
  }

  bool has_gaps() const { return rows > 1 && (to_stride != row_bytes || from_stride != row_bytes); }
};

}  // namespace skein
