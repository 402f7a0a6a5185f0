// Internal to the kernels of paged attention: the bound problem, on any device.
#pragma once

#include <cstdint>

#include "skein/ir/kernel.h"

#ifdef __CUDACC__
#define SKEIN_PAGED_HOST_DEVICE __host__ __device__
#else
#define SKEIN_PAGED_HOST_DEVICE
#endif

namespace skein::paged {

constexpr int64_t kBlock = 64;  // positions that a step of the softmax takes
constexpr int64_t kSums = 16;   // sums of exponentials, by position

struct Matrix {
  void* data = nullptr;
  int64_t stride = 0;  // elements
  template <typename T>
  SKEIN_PAGED_HOST_DEVICE T* row(int64_t index) const {
    return static_cast<T*>(data) + index * stride;
  }
};

struct Problem {
  Matrix q, k, v, keys, values, o;
  const int32_t *sequence = nullptr, *position = nullptr, *pages = nullptr;
  int64_t pages_stride = 0;
  int64_t tokens = 0, sequences = 0, columns = 0, num_pages = 0;  // T, R, M, N
  int64_t heads = 0, kv_heads = 0, head_dim = 0, page_size = 0;   // of this rank
  float scale = 1;

  SKEIN_PAGED_HOST_DEVICE int64_t group_size() const { return heads / kv_heads; }
  SKEIN_PAGED_HOST_DEVICE const int32_t* pages_of(int64_t s) const {
    return pages + s * pages_stride;
  }
  // Whether a token's sequence and position are in the table; its pages may still be wrong.
  SKEIN_PAGED_HOST_DEVICE bool is_in_table(int64_t token) const {
    const int64_t s = sequence[token], p = position[token];
    return s >= 0 && s < sequences && p >= 0 && p < columns * page_size;
  }
  SKEIN_PAGED_HOST_DEVICE bool is_page(int32_t page) const { return page >= 0 && page < num_pages; }
};

inline Problem bind(const KernelCall& call) {
  const auto matrix = [](const View& view) { return Matrix{view.data, view.row_stride}; };
  const View &q = call.inputs[0], &k = call.inputs[1], &keys = call.inputs[3];
  const View& pages = call.inputs[7];
  Problem problem;
  problem.q = matrix(q);
  problem.k = matrix(k);
  problem.v = matrix(call.inputs[2]);
  problem.keys = matrix(keys);
  problem.values = matrix(call.inputs[4]);
  problem.o = matrix(call.outputs[0]);
  problem.sequence = call.inputs[5].as<const int32_t>();
  problem.position = call.inputs[6].as<const int32_t>();
  problem.pages = pages.as<const int32_t>();
  problem.pages_stride = pages.row_stride;
  problem.tokens = q.rows();
  problem.sequences = pages.rows();
  problem.columns = pages.cols();
  problem.num_pages = keys.rows();
  problem.head_dim = call.attrs.integer("head_dim");
  problem.page_size = call.attrs.integer("page_size");
  problem.heads = q.cols() / problem.head_dim;
  problem.kv_heads = k.cols() / problem.head_dim;
  problem.scale = static_cast<float>(call.attrs.real("scale"));
  return problem;
}

}  // namespace skein::paged
