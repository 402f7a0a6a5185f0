// Many tensors in one launch: a list of them travels in the kernel's arguments, and their elements
// are dealt out in chunks.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>

namespace skein::cuda {

struct TensorChunk {
  int tensor;            // in the list
  int64_t begin, count;  // its elements [begin, begin + count)
};

// Tensors of kOperands addresses each. Leaves a kernel 96 bytes for other arguments, of 4 KB.
template <int kOperands>
struct TensorList {
  static constexpr int kCapacity = 3968 / (8 * (kOperands + 2));

  void* data[kOperands][kCapacity];
  int64_t counts[kCapacity];           // elements
  int64_t first_chunk[kCapacity + 1];  // chunks before each tensor, and all
  int64_t chunk_elements;
  int size;

  __host__ __device__ int64_t num_chunks() const { return first_chunk[size]; }

  __device__ TensorChunk chunk(int64_t index) const {
    int tensor = 0, end = size;  // that has the chunk is one of [tensor, end)
    while (end - tensor > 1) {
      const int middle = (tensor + end) / 2;
      (first_chunk[middle] <= index ? tensor : end) = middle;
    }
    const int64_t begin = (index - first_chunk[tensor]) * chunk_elements;
    const int64_t left = counts[tensor] - begin;
    return {tensor, begin, left < chunk_elements ? left : chunk_elements};
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
void for_each_list(int64_t num_tensors, int64_t chunk_elements, const Tensor& tensor,
                   const Launch& launch) {
  TensorList<kOperands> list;
  list.chunk_elements = chunk_elements;
  list.size = 0;
  list.first_chunk[0] = 0;
  for (int64_t i = 0; i < num_tensors; ++i) {
    const ListedTensor<kOperands> next = tensor(i);
    for (int operand = 0; operand < kOperands; ++operand) {
      list.data[operand][list.size] = next.data[operand];
    }
    list.counts[list.size] = next.count;
    list.first_chunk[list.size + 1] =
        list.first_chunk[list.size] + (next.count + chunk_elements - 1) / chunk_elements;
    ++list.size;
    if (list.size == list.kCapacity || i + 1 == num_tensors) {
      launch(list);
      list.size = 0;
    }
  }
}

}  // namespace skein::cuda
