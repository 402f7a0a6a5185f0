// A matrix that kernels under test read and write.
#pragma once

#include <vector>

#include "tests/ops/graph_run.h"

namespace skein::op_test {

// A strided matrix in memory of the device.
class DeviceMatrix {
 public:
  DeviceMatrix(DType dtype, int64_t rows, int64_t cols, int64_t offset, int64_t padding,
               uint32_t stream)
      : bytes_(test_device().allocate((rows * (cols + padding) + offset) * size_of(dtype))),
        view_{static_cast<char*>(bytes_) + offset * size_of(dtype), dtype, Shape{rows, cols},
              cols + padding} {
    GraphRun::fill(view_, random_tensor(dtype, {rows, cols}, stream).values);
  }
  ~DeviceMatrix() { test_device().release(bytes_); }
  DeviceMatrix(const DeviceMatrix&) = delete;
  DeviceMatrix& operator=(const DeviceMatrix&) = delete;
  const View& view() const { return view_; }
  std::vector<double> values() const { return GraphRun::values_of(view_); }

 private:
  void* bytes_;
  View view_;
};

}  // namespace skein::op_test
