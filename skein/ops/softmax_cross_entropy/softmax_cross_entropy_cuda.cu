#include <algorithm>
#include <cmath>

#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"
#include "skein/ops/softmax_cross_entropy/softmax_cross_entropy.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

// One block a row, in rounds of kRound packs a thread. A row of at most kKeptRounds stays in
// registers. Of a longer one each round is on its way while the one before is computed, and it is
// read again for the gradient, the last round first, out of the caches: two rows a multiprocessor
// leave them room.
constexpr int kMostThreads = 512;
constexpr int kRound = 4;
constexpr int kKeptRounds = 2;

template <int n>
__device__ int round_cols() {
  return kRound * n * static_cast<int>(blockDim.x);
}
// The first column of a thread's packs in a round; each warp has its packs side by side, so the
// others follow at distances that are known when this is compiled.
template <int n>
__device__ int first_col() {
  const int thread = static_cast<int>(threadIdx.x);
  return (thread / 32 * kRound * 32 + thread % 32) * n;
}

// e^x for x <= 0, and 0 where that is not a normal number: numbers below those would take three
// more instructions a logit, and instructions are what this kernel is short of.
__device__ float exp_or_zero(float x) {
#ifdef __CUDA_ARCH__
  constexpr float kLog2E = 1.44269504f;
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * kLog2E));
  return result;
#else
  return __expf(x);
#endif
}

// A round's packs of a thread. They wait as words: elements of bf16 would take a register each.
template <typename T, int n>
struct Round {
  static constexpr bool kPairs = sizeof(T) == 2 && n % 2 == 0;
  using Words = Pack<std::conditional_t<kPairs, uint32_t, T>, kPairs ? n / 2 : n>;
  Words words[kRound];

  Round() = default;
  // Packs behind the end read as -infinity, which counts for nothing.
  __device__ Round(const T* x, int first, int cols) {
#pragma unroll
    for (int i = 0; i < kRound; ++i) {
      const int offset = i * 32 * n;
      words[i] = std::bit_cast<Words>(
          load_pack_or<n>(T(-INFINITY), first + offset < cols, x + first + offset));
    }
  }
  __device__ void get(float (&values)[n], int i) const {
    for (int j = 0; j < n; ++j) {
      if constexpr (kPairs) {
        const uint32_t pair = words[i].at[j / 2];
        values[j] = __uint_as_float(j % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
      } else {
        values[j] = to_float(words[i].at[j]);
      }
    }
  }
};

// The largest logit of some, and the sum of e^(logit - that).
struct Sums {
  float most = -INFINITY, sum = 0;

  // Where all are -infinity, the sum is 0.
  __device__ static float shift(float most) { return most == -INFINITY ? 0.0f : most; }

  template <typename T, int n>
  __device__ void add(const Round<T, n>& round) {
    constexpr int kAtOnce = 2;  // packs: more would not fit into registers
#pragma unroll
    for (int first = 0; first < kRound; first += kAtOnce) {
      const float before = most;
      float x[kAtOnce][n];
      for (int i = 0; i < kAtOnce; ++i) {
        round.get(x[i], first + i);
        for (int j = 0; j < n; ++j) most = fmaxf(most, x[i][j]);
      }
      sum *= exp_or_zero(before - shift(most));
      for (int i = 0; i < kAtOnce; ++i) {
        for (int j = 0; j < n; ++j) sum += exp_or_zero(x[i][j] - shift(most));
      }
    }
  }

  __device__ Sums of_block() const {
    const float all = block_max(most);
    return {all, block_sum(sum * exp_or_zero(most - shift(all)))};
  }
};

// A row's logits, of which a thread has some.
template <typename T, int n, bool is_kept>
class Logits {
 public:
  __device__ Logits(const T* x, int cols) : x_(x), cols_(cols) {
    if constexpr (is_kept) {
#pragma unroll
      for (int i = 0; i < kKeptRounds; ++i) {
        kept_[i] = Round<T, n>(x, first_col<n>() + i * round_cols<n>(), cols);
      }
    }
  }

  __device__ Sums sums() const {
    Sums sums;
    if constexpr (is_kept) {
#pragma unroll
      for (const Round<T, n>& round : kept_) sums.add(round);
    } else {
      const int step = round_cols<n>();
      int col = first_col<n>();
      Round<T, n> next(x_, col, cols_);
      for (int begin = 0; begin < cols_; begin += step) {
        const Round<T, n> round = next;
        next = Round<T, n>(x_, col += step, cols_);
        sums.add(round);
      }
    }
    return sums.of_block();
  }

  // body(round, its first column) with each round. The logits may be overwritten meanwhile.
  template <typename Body>
  __device__ void each_round(const Body& body) const {
    const int step = round_cols<n>();
    if constexpr (is_kept) {
#pragma unroll
      for (int i = 0; i < kKeptRounds; ++i) body(kept_[i], first_col<n>() + i * step);
    } else {
      const int last = (cols_ - 1) / step * step;
      int col = last + first_col<n>();
      Round<T, n> next(x_, col, cols_);
      for (int begin = last; begin >= 0; begin -= step, col -= step) {
        const Round<T, n> round = next;
        if (begin > 0) next = Round<T, n>(x_, col - step, cols_);
        body(round, col);
      }
    }
  }

  __device__ int cols() const { return cols_; }

 private:
  const T* x_;
  int cols_;
  Round<T, n> kept_[is_kept ? kKeptRounds : 1];
};

// What is known of one row over the whole vocabulary, and where the label lies among this rank's
// logits.
struct Row {
  float most, sum;
  float label_logit;
  int64_t label;  // may be outside

  __device__ float loss() const { return logf(sum) - (label_logit - most); }
};

// The gradient may lie where the logits are.
template <int n, typename T, bool is_kept, typename G>
__device__ void write_gradient(const Row& row, const Logits<T, n, is_kept>& logits, G* gradient) {
  const float scale = 1.0f / row.sum;
  const int cols = logits.cols();
  logits.each_round([&](const Round<T, n>& round, int col) {
#pragma unroll
    for (int i = 0; i < kRound; ++i) {
      float values[n];
      round.get(values, i);
      for (int j = 0; j < n; ++j) values[j] = exp_or_zero(values[j] - row.most) * scale;
      const int offset = i * 32 * n;
      if (col + offset < cols) {
        store_pack_global(gradient + col + offset, from_floats<G>(values));
      }
    }
  });
  __syncthreads();  // after whoever has the label's column
  if (threadIdx.x == 0 && row.label >= 0 && row.label < cols) {
    gradient[row.label] = from_float<G>(expf(row.label_logit - row.most) / row.sum - 1.0f);
  }
}

template <int n, typename G>
__device__ void write_zeros(int cols, G* gradient, int begin = 0) {
  for (int col = begin + threadIdx.x * n; col < cols; col += blockDim.x * n) {
    store_pack_global(gradient + col, Pack<G, n>{});
  }
}

template <typename T, typename G, int n, bool is_kept>
__global__ void __launch_bounds__(kMostThreads, 2)
    cross_entropy(RowsOf<const T> logits, const int32_t* labels, int cols, int all_cols,
                  float* loss, RowsOf<G> gradients) {
  wait_for_previous_kernel();
  const int64_t row = blockIdx.x;
  const T* const x = logits.at(row);
  const Logits<T, n, is_kept> all(x, cols);  // does not wait for the label
  const int label = labels[row];
  if (label < 0 || label >= cols) {
    if (threadIdx.x == 0) loss[row] = 0.0f;
    return write_zeros<n>(all_cols, gradients.at(row));
  }
  const float label_logit = to_float(x[label]);
  const Sums sums = all.sums();
  const Row known{sums.most, sums.sum, label_logit, label};
  if (threadIdx.x == 0) loss[row] = known.loss();
  write_gradient(known, all, gradients.at(row));
  write_zeros<n>(all_cols, gradients.at(row), cols);
}

// ---- a split vocabulary ----

template <typename T, int n>
__global__ void __launch_bounds__(kMostThreads, 2)
    sum_part(RowsOf<const T> logits, const int32_t* labels, int64_t first_logit, int cols,
             RowsOf<float> stats) {
  wait_for_previous_kernel();
  const int64_t row = blockIdx.x;
  const T* const x = logits.at(row);
  const Sums sums = Logits<T, n, false>(x, cols).sums();
  if (threadIdx.x > 0) return;
  const int64_t label = labels[row] - first_logit;
  float* const to = stats.at(row);
  to[0] = sums.most;
  to[1] = sums.sum;
  to[2] = label >= 0 && label < cols ? to_float(x[label]) : 0.0f;
}

template <typename T, typename G, int n>
__global__ void __launch_bounds__(kMostThreads, 2)
    finish(RowsOf<const T> logits, const int32_t* labels, RowsOf<const float> stats, int ranks,
           int64_t first_logit, int counted, int cols, float* loss, RowsOf<G> gradients) {
  wait_for_previous_kernel();
  const int64_t row = blockIdx.x, rows = gridDim.x, label = labels[row];
  if (label < 0 || label >= int64_t{cols} * ranks) {
    if (threadIdx.x == 0) loss[row] = 0.0f;
    return write_zeros<n>(cols, gradients.at(row));
  }
  const T* const x = logits.at(row);
  // The ranks' terms, in rank order.
  const auto of = [&](int64_t rank) { return stats.at(rank * rows + row); };
  Row known{-INFINITY, 0.0f, of(label / cols)[2], label - first_logit};
  for (int rank = 0; rank < ranks; ++rank) known.most = fmaxf(known.most, of(rank)[0]);
  for (int rank = 0; rank < ranks; ++rank) {
    known.sum += of(rank)[1] * expf(of(rank)[0] - known.most);
  }
  if (threadIdx.x == 0) loss[row] = known.loss();
  write_gradient(known, Logits<T, n, false>(x, counted), gradients.at(row));
  write_zeros<n>(cols, gradients.at(row), counted);
}

// ---- launches ----

// body(T(), G(), pack) with the dtypes of the logits and of their gradient, and how many elements
// move as one: no pack has columns of which only some count.
template <typename Body>
void with_types(const KernelCall& call, const View& gradient, const Body& body) {
  const View& logits = call.inputs[0];
  const int64_t counted = columns_that_count(call);
  with_type(logits.dtype, [&](auto x) {
    with_type(gradient.dtype, [&](auto dx) {
      constexpr int n = kPackOf<decltype(x)>;
      if (are_packable(n, logits, gradient) && counted % n == 0) {
        body(x, dx, std::integral_constant<int, n>());
      } else {
        body(x, dx, std::integral_constant<int, 1>());
      }
    });
  });
}

unsigned threads_of(const View& logits, int n) {
  return threads_for(blocks_for(logits.cols(), int64_t{n} * kKeptRounds * kRound), kMostThreads);
}

void run(const KernelCall& call) {
  const View &logits = call.inputs[0], &gradient = call.outputs[1];
  with_types(call, gradient, [&](auto x, auto dx, auto n) {
    using T = decltype(x);
    using G = decltype(dx);
    const unsigned threads = threads_of(logits, n);
    const bool is_kept = logits.cols() <= int64_t{threads} * kKeptRounds * kRound * n;
    launch(call, static_cast<unsigned>(logits.rows()), threads,
           is_kept ? cross_entropy<T, G, n, true> : cross_entropy<T, G, n, false>,
           rows_of<const T>(logits), call.inputs[1].as<const int32_t>(),
           static_cast<int>(columns_that_count(call)), static_cast<int>(logits.cols()),
           call.outputs[0].as<float>(), rows_of<G>(gradient));
  });
}

void run_stats(const KernelCall& call) {
  const View& logits = call.inputs[0];
  with_types(call, logits, [&](auto x, auto, auto n) {
    using T = decltype(x);
    launch(call, static_cast<unsigned>(logits.rows()), threads_of(logits, n), sum_part<T, n>,
           rows_of<const T>(logits), call.inputs[1].as<const int32_t>(),
           call.attrs.integer("first_logit"), static_cast<int>(columns_that_count(call)),
           rows_of<float>(call.outputs[0]));
  });
}

void run_finish(const KernelCall& call) {
  const View &logits = call.inputs[0], &stats = call.inputs[2], &gradient = call.outputs[1];
  with_types(call, gradient, [&](auto x, auto dx, auto n) {
    using T = decltype(x);
    using G = decltype(dx);
    launch(call, static_cast<unsigned>(logits.rows()), threads_of(logits, n), finish<T, G, n>,
           rows_of<const T>(logits), call.inputs[1].as<const int32_t>(),
           rows_of<const float>(stats), static_cast<int>(stats.rows() / logits.rows()),
           call.attrs.integer("first_logit"), static_cast<int>(columns_that_count(call)),
           static_cast<int>(logits.cols()), call.outputs[0].as<float>(), rows_of<G>(gradient));
  });
}

}  // namespace

void add_softmax_cross_entropy_cuda_kernels(KernelTable& table) {
  table["softmax_cross_entropy"] = {.run = run};
  table["softmax_stats"] = {.run = run_stats};
  table["softmax_finish"] = {.run = run_finish};
}

}  // namespace skein
