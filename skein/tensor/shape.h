// The sizes of a tensor's dims, outermost first; row-major.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "skein/base/error.h"

namespace skein {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  // dim(-1) is the last one.
  int64_t dim(int index) const { return dims_.at(index < 0 ? dims_.size() + index : index); }
  void set_dim(int index, int64_t size) { dims_.at(index) = size; }
  const std::vector<int64_t>& dims() const { return dims_; }

  int64_t num_elements() const {
    int64_t product = 1;
    for (const int64_t size : dims_) product *= size;
    return product;
  }
  // As a matrix: everything but the last dim, and the last dim. A scalar or vector is one row.
  int64_t cols() const { return dims_.empty() ? 1 : dims_.back(); }
  int64_t rows() const { return rank() < 2 ? 1 : num_elements() / (cols() == 0 ? 1 : cols()); }

  bool operator==(const Shape&) const = default;

  std::string to_string() const;  // "[1024, 512]"

 private:
  std::vector<int64_t> dims_;
};

}  // namespace skein
