// The product y = x w^T of `linear` as a program of its own, on any kind of device: to measure a
// device, or to check it.
//
// Shapes   x [rows, terms], w [cols, terms]: `dtype`; y [rows, cols]: f32
// Errors   as Executor
#pragma once

#include "skein/runtime/executor.h"

namespace skein {

class ProductProgram {
 public:
  ProductProgram(Device& device, DType dtype, int64_t rows, int64_t cols, int64_t terms);

  View x() const { return executor_.view("x"); }
  View w() const { return executor_.view("w"); }
  View y() const { return executor_.view("y"); }
  void run() { executor_.run("forward"); }

 private:
  Graph graph_;
  ProgramSet programs_;
  Executor executor_;
};

}  // namespace skein
