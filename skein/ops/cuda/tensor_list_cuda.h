// Many tensors in one launch: a list of them travels in the kernel's arguments, and their elements
// are divided into segments.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>

namespace skein::cuda {

struct TensorSegment {
  int tensor;            // in the list
  int64_t begin, count;  // its elements [begin, begin + count)
};

// Tensors of kOperands addresses each. Leaves a kernel 96 bytes for other arguments, of 4 KB.
template <int kOperands>
struct TensorList {
  static constexpr int kCapacity = 3968 / (8 * (kOperands + 2));

  void* data[kOperands][kCapacity];
  int64_t counts[kCapacity];             // elements
  int64_t first_segment[kCapacity + 1];  // segments before each tensor, then their number
  int64_t segment_elements;
  int size;

  __host__ __device__ int64_t num_segments() const { return first_segment[size]; }

  __device__ TensorSegment segment(int64_t index) const {
    int tensor = 0, end = size;  // the segment's tensor is one of [tensor, end)
    while (end - tensor > 1) {
      const int middle = (tensor + end) / 2;
      (first_segment[middle] <= index ? tensor : end) = middle;
    }
    const int64_t begin = (index - first_segment[tensor]) * segment_elements;
    const int64_t left = counts[tensor] - begin;
    return {tensor, begin, left < segment_elements ? left : segment_elements};
  }
};

static_assert(sizeof(TensorList<1>) <= 4000 && sizeof(TensorList<2>) <= 4000);

template <int kOperands>
struct ListedTensor {
  std::array<void*, kOperands> data;
  int64_t count;
};

// Calls launch(list) with the tensors that tensor(0), tensor(1), ... describe, as many at a time as
// a list holds.
template <int kOperands, typename Tensor, typename Launch>
void for_each_list(int64_t num_tensors, int64_t segment_elements, const Tensor& tensor,
                   const Launch& launch) {
  TensorList<kOperands> list;
  list.segment_elements = segment_elements;
  list.size = 0;
  list.first_segment[0] = 0;
  for (int64_t i = 0; i < num_tensors; ++i) {
    const ListedTensor<kOperands> next = tensor(i);
    for (int operand = 0; operand < kOperands; ++operand) {
      list.data[operand][list.size] = next.data[operand];
    }
    list.counts[list.size] = next.count;
    list.first_segment[list.size + 1] =
        list.first_segment[list.size] + (next.count + segment_elements - 1) / segment_elements;
    ++list.size;
    if (list.size == list.kCapacity || i + 1 == num_tensors) {
      launch(list);
      list.size = 0;
    }
  }
}

}  // namespace skein::cuda
