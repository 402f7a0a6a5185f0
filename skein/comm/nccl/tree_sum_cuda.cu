#include <type_traits>

#include "skein/base/machine/start_kernel_cuda.h"
#include "skein/comm/nccl/tree_sum_cuda.h"

namespace skein {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxLevels = 16;  // 2^16 terms
constexpr int kAnySize = 0;
constexpr int kPairs = -1;  // any size, and some ranks' terms are halves
constexpr int kBranch = 8;  // terms that meet in registers where there are more

template <typename T>
using Accumulator = std::conditional_t<std::is_same_v<T, bfloat16>, float, T>;

template <typename T, int n>
struct alignas(sizeof(T) * n) Pack {
  T at[n];
};
// n running sums.
template <typename T, int n>
struct Sums {
  Accumulator<T> at[n];
};

template <typename T, int n>
__device__ Sums<T, n> load_of_rank(const SumTerms& terms, int term, int64_t index) {
  const char* from = static_cast<const char*>(terms.own);
  if (term != terms.rank) {
    const int slot = term < terms.rank ? term : term - 1;
    from = static_cast<const char*>(terms.others) + slot * terms.distance;
  }
  const Pack<T, n> pack =
      *reinterpret_cast<const Pack<T, n>*>(reinterpret_cast<const T*>(from) + index);
  Sums<T, n> sums;
  for (int i = 0; i < n; ++i) sums.at[i] = static_cast<Accumulator<T>>(pack.at[i]);
  return sums;
}

template <typename T, int n>
__device__ Sums<T, n> add(const Sums<T, n>& a, const Sums<T, n>& b) {
  Sums<T, n> sums;
  for (int i = 0; i < n; ++i) sums.at[i] = a.at[i] + b.at[i];
  return sums;
}

// The i-th term of the tree: a rank's or, if `paired`, perhaps the sum of two ranks' halves.
template <typename T, int n, bool paired>
__device__ Sums<T, n> load(const SumTerms& terms, int i, int64_t index) {
  if constexpr (!paired) return load_of_rank<T, n>(terms, i, index);
  const int first = static_cast<int>(terms.pairs.first),
            count = static_cast<int>(terms.pairs.count);
  if (i < first) return load_of_rank<T, n>(terms, i, index);
  if (i >= first + count) return load_of_rank<T, n>(terms, i + count, index);
  const Sums<T, n> half = load_of_rank<T, n>(terms, 2 * i - first, index);
  return add(half, load_of_rank<T, n>(terms, 2 * i - first + 1, index));
}

// The sum of the terms [first, first + count), where count is a power of two.
template <typename T, int n, int count, bool paired>
__device__ Sums<T, n> add_all(const SumTerms& terms, int first, int64_t index) {
  if constexpr (count == 1) {
    return load<T, n, paired>(terms, first, index);
  } else {
    const Sums<T, n> left = add_all<T, n, count / 2, paired>(terms, first, index);
    return add(left, add_all<T, n, count / 2, paired>(terms, first + count / 2, index));
  }
}

// The same sum where terms from `end` on do not exist.
template <typename T, int n, int count, bool paired>
__device__ Sums<T, n> add_existing(const SumTerms& terms, int first, int end, int64_t index) {
  if constexpr (count == 1) {
    return load<T, n, paired>(terms, first, index);
  } else {
    const Sums<T, n> left = add_existing<T, n, count / 2, paired>(terms, first, end, index);
    if (first + count / 2 >= end) return left;
    return add(left, add_existing<T, n, count / 2, paired>(terms, first + count / 2, end, index));
  }
}

// Sums of kBranch terms each are added in pairs, as the digits of a binary counter carry.
template <typename T, int n, bool paired>
__device__ Sums<T, n> add_branches(const SumTerms& terms, int end, int64_t index) {
  Sums<T, n> waiting[kMaxLevels];  // sums of 2^level branches
  const int last = (end - 1) / kBranch;
  for (int branch = 0; branch < last; ++branch) {
    Sums<T, n> sum = add_all<T, n, kBranch, paired>(terms, branch * kBranch, index);
    int level = 0;
    for (; (branch >> level) & 1; ++level) sum = add(waiting[level], sum);
    waiting[level] = sum;
  }
  Sums<T, n> sum = add_existing<T, n, kBranch, paired>(terms, last * kBranch, end, index);
  for (int level = 0; last >> level; ++level) {
    if ((last >> level) & 1) sum = add(waiting[level], sum);
  }
  return sum;
}

template <typename T, int n, int size>
__device__ void sum_at(const SumTerms& terms, T* result, int64_t index) {
  constexpr bool paired = size == kPairs;
  Sums<T, n> sums;
  if constexpr (size != kAnySize && !paired) {
    sums = add_all<T, n, size, false>(terms, 0, index);
  } else {
    const int end = terms.size - static_cast<int>(terms.pairs.count);
    sums = end <= kBranch ? add_existing<T, n, kBranch, paired>(terms, 0, end, index)
                          : add_branches<T, n, paired>(terms, end, index);
  }
  Pack<T, n> pack;
  for (int i = 0; i < n; ++i) pack.at[i] = static_cast<T>(sums.at[i]);
  *reinterpret_cast<Pack<T, n>*>(result + index) = pack;
}

// A thread adds a pack of n elements; elements that are left over have a thread each.
template <typename T, int n, int size>
__global__ void __launch_bounds__(kThreads) sum_terms(SumTerms terms, T* result, int64_t elements) {
  cuda::wait_for_previous_kernel();
  const int64_t packs = elements / n;
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (thread < packs) return sum_at<T, n, size>(terms, result, thread * n);
  const int64_t index = packs * n + (thread - packs);
  if (index < elements) sum_at<T, 1, size>(terms, result, index);
}

template <typename T, int n, int size>
cudaError_t enqueue(const SumTerms& terms, void* result, int64_t elements, cudaStream_t stream) {
  const int64_t threads = elements / n + elements % n;
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  return cuda::start_kernel(stream, blocks, kThreads, 0, sum_terms<T, n, size>, terms,
                            static_cast<T*>(result), elements);
}

template <typename T>
cudaError_t enqueue_as(const SumTerms& terms, void* result, int64_t elements, cudaStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const uintptr_t bits =
      reinterpret_cast<uintptr_t>(terms.own) | reinterpret_cast<uintptr_t>(terms.others) |
      static_cast<uintptr_t>(terms.distance) | reinterpret_cast<uintptr_t>(result);
  if (terms.pairs.count > 0) {
    return bits % 16 != 0 ? enqueue<T, 1, kPairs>(terms, result, elements, stream)
                          : enqueue<T, kPack, kPairs>(terms, result, elements, stream);
  }
  if (bits % 16 != 0) return enqueue<T, 1, kAnySize>(terms, result, elements, stream);
  switch (terms.size) {
    case 2:
      return enqueue<T, kPack, 2>(terms, result, elements, stream);
    case 4:
      return enqueue<T, kPack, 4>(terms, result, elements, stream);
    case 8:
      return enqueue<T, kPack, 8>(terms, result, elements, stream);
    default:
      return enqueue<T, kPack, kAnySize>(terms, result, elements, stream);
  }
}

}  // namespace

cudaError_t enqueue_tree_sum(DType dtype, const SumTerms& terms, void* result, int64_t elements,
                             cudaStream_t stream) {
  if (elements == 0) return cudaSuccess;
  switch (dtype) {
    case DType::kF32:
      return enqueue_as<float>(terms, result, elements, stream);
    case DType::kF64:
      return enqueue_as<double>(terms, result, elements, stream);
    case DType::kI32:
      return enqueue_as<uint32_t>(terms, result, elements, stream);  // wraps
    case DType::kBF16:
      return enqueue_as<bfloat16>(terms, result, elements, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace skein
