#include "skein/comm/tree_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr int64_t kBlock = 1024;
constexpr int kMaxLevels = 16;  // 2^16 terms

template <typename T>
struct Accumulator {
  using Type = T;
};
template <>
struct Accumulator<bfloat16> {
  using Type = float;
};
template <>
struct Accumulator<int32_t> {
  using Type = uint32_t;  // wraps without undefined behaviour
};

// bfloat16's conversions with selections instead of branches, so that they vectorize; same bits.
float widen(bfloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
template <typename T>
T widen(T x) {
  return x;
}
template <typename S, typename Acc>
S narrow(Acc x) {
  if constexpr (std::is_same_v<S, bfloat16>) {
    const uint32_t word = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
    const uint32_t quiet = (word >> 16) | 0x40u;
    bfloat16 result;
    result.bits = static_cast<uint16_t>(x != x ? quiet : rounded);
    return result;
  } else {
    return static_cast<S>(x);
  }
}

// Sums elements [begin, begin + count) of all terms, count <= kBlock.
template <typename T>
class BlockSum {
 public:
  using Acc = typename Accumulator<T>::Type;

  BlockSum(std::span<const void* const> terms, TreePairs pairs, int64_t begin, int64_t count)
      : terms_(terms), pairs_(pairs), begin_(begin), count_(count) {}

  void run(T* result) {
    result += begin_;
    const size_t n = terms_.size() - static_cast<size_t>(pairs_.count);
    if (n == 1 && !is_pair(0)) {
      if (result != term(0)) std::memmove(result, term(0), static_cast<size_t>(count_) * sizeof(T));
    } else if (n == 1) {
      add(term(0), second_half(0), result);
    } else if (n == 2 && !is_pair(0) && !is_pair(1)) {
      add(term(0), term(1), result);
    } else {
      const size_t left = std::bit_ceil(n) / 2;
      Acc* sum = levels_[0].data();
      subtree(0, left, 1, sum);
      if (n - left == 1 && !is_pair(left)) return add(sum, term(left), result);
      Acc* rest = levels_[1].data();
      subtree(left, n - left, 2, rest);
      add(sum, rest, result);
    }
  }

 private:
  bool is_pair(size_t i) const {
    const auto first = static_cast<size_t>(pairs_.first), count = static_cast<size_t>(pairs_.count);
    return i >= first && i - first < count;
  }
  // The i-th term of the tree, or its first half; the second half lies behind it.
  const T* term(size_t i) const { return at(i + pairs_before(i)); }
  const T* second_half(size_t i) const { return at(i + pairs_before(i) + 1); }
  size_t pairs_before(size_t i) const {
    const auto first = static_cast<size_t>(pairs_.first), count = static_cast<size_t>(pairs_.count);
    return i < first ? 0 : std::min(i - first, count);
  }
  const T* at(size_t index) const { return static_cast<const T*>(terms_[index]) + begin_; }

  // Blocks of levels_ from `level` on are free to use.
  void subtree(size_t first, size_t n, size_t level, Acc* sum) {
    if (n == 1 && is_pair(first)) return add(term(first), second_half(first), sum);
    if (n == 1) return add_nothing(term(first), sum);
    if (n == 2 && !is_pair(first) && !is_pair(first + 1)) {
      return add(term(first), term(first + 1), sum);
    }
    const size_t left = std::bit_ceil(n) / 2;
    subtree(first, left, level, sum);
    if (n - left == 1 && !is_pair(first + left)) return add(sum, term(first + left), sum);
    Acc* rest = levels_.at(level).data();
    subtree(first + left, n - left, level + 1, rest);
    add(sum, rest, sum);
  }

  void add_nothing(const T* a, Acc* sum) const {
    const int64_t count = count_;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) sum[i] = static_cast<Acc>(widen(a[i]));
  }

  // No pointer is restrict: the sum may be one of the terms, at the same elements, which a simd
  // loop allows.
  template <typename A, typename B, typename S>
  void add(const A* a, const B* b, S* sum) const {
    const int64_t count = count_;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      sum[i] = narrow<S>(
          static_cast<Acc>(static_cast<Acc>(widen(a[i])) + static_cast<Acc>(widen(b[i]))));
    }
  }

  std::span<const void* const> terms_;
  TreePairs pairs_;
  int64_t begin_;
  int64_t count_;
  // One level more for pairs; uninitialised on purpose.
  std::array<std::array<Acc, kBlock>, kMaxLevels + 1> levels_;
};

template <typename T>
void sum(std::span<const void* const> terms, TreePairs pairs, void* result, int64_t elements) {
  constexpr int64_t kWorthThreads = 16 * kBlock;
#pragma omp parallel for schedule(static) if (elements > kWorthThreads)
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    BlockSum<T>(terms, pairs, begin, std::min(kBlock, elements - begin))
        .run(static_cast<T*>(result));
  }
}

}  // namespace

void tree_sum(DType dtype, std::span<const void* const> terms, void* result, int64_t elements,
              TreePairs pairs) {
  const int64_t num_terms = std::ssize(terms);
  if (num_terms < 1 || num_terms > int64_t{1} << kMaxLevels) {
    fail(ErrorCode::kInternal, "tree_sum takes 1 to 65536 terms; got {}", num_terms);
  }
  if (pairs.first < 0 || pairs.count < 0 || pairs.first + 2 * pairs.count > num_terms) {
    fail(ErrorCode::kInternal, "tree_sum: {} pairs from term {} on, of {} terms", pairs.count,
         pairs.first, num_terms);
  }
  switch (dtype) {
    case DType::kF32:
      return sum<float>(terms, pairs, result, elements);
    case DType::kF64:
      return sum<double>(terms, pairs, result, elements);
    case DType::kI32:
      return sum<int32_t>(terms, pairs, result, elements);
    case DType::kBF16:
      return sum<bfloat16>(terms, pairs, result, elements);
  }
}

}  // namespace skein
