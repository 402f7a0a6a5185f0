#include <algorithm>

#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"
#include "skein/ops/embedding/embedding_cuda_rules.h"

namespace skein {
namespace {

using namespace cuda;            // NOLINT(google-build-using-namespace)
using namespace embedding_cuda;  // NOLINT(google-build-using-namespace)

// The row of the whole table that this rank's first one is, where the vocabulary is split.
int64_t first_row(const KernelCall& call) {
  return call.attrs.has("first_row") ? call.attrs.integer("first_row") : 0;
}

// ---- forward ----

constexpr int kThreads = 256;
constexpr int kTokens = 4;  // a thread reads so many before it writes

// One thread a pack of n columns of kTokens tokens; blockIdx.y steps over the tokens. The last
// token may be done twice.
template <typename T, int n>
__global__ void __launch_bounds__(kThreads, 6)
    pick_rows(const int32_t* tokens, int64_t num_tokens, RowsOf<const T> table, int64_t first_row,
              int64_t vocabulary, RowsOf<T> x, int64_t cols) {
  wait_for_previous_kernel();
  const int64_t col = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * n;
  if (col >= cols) return;
  for (int64_t first = int64_t{blockIdx.y} * kTokens; first < num_tokens;
       first += int64_t{gridDim.y} * kTokens) {
    int64_t rows[kTokens];
    Pack<T, n> packs[kTokens];
#pragma unroll
    for (int i = 0; i < kTokens; ++i) {
      rows[i] = tokens[std::min(first + i, num_tokens - 1)] - first_row;
    }
#pragma unroll
    for (int i = 0; i < kTokens; ++i) {
      const bool is_inside = rows[i] >= 0 && rows[i] < vocabulary;
      packs[i] = load_pack<n>(table.at(is_inside ? rows[i] : 0) + col);
      if (!is_inside) packs[i] = {};
    }
#pragma unroll
    for (int i = 0; i < kTokens; ++i) {
      store_pack(x.at(std::min(first + i, num_tokens - 1)) + col, packs[i]);
    }
  }
}

template <typename T, int n>
void launch_pick_rows(const KernelCall& call) {
  const View &table = call.inputs[1], &x = call.outputs[0];
  const unsigned threads = threads_for(blocks_for(x.cols(), n), kThreads);
  const dim3 grid(blocks_for(x.cols(), int64_t{threads} * n),
                  std::min(blocks_for(x.rows(), kTokens), 65535u));
  launch(call, grid, threads, pick_rows<T, n>, call.inputs[0].as<const int32_t>(), x.rows(),
         rows_of<const T>(table), first_row(call), table.rows(), rows_of<T>(x), x.cols());
}

void run(const KernelCall& call) {
  with_type(call.outputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    if (are_packable(kPackOf<T>, call.inputs[1], call.outputs[0])) {
      launch_pick_rows<T, kPackOf<T>>(call);
    } else {
      launch_pick_rows<T, 1>(call);
    }
  });
}

// ---- backward ----
//
// The tokens are sorted by their row of the table, in order where rows are equal, and cut into
// windows. A block adds a window's gradients row after row and writes each row once. Where a row
// goes on from the window before, its sum is left in `partial`, and one more kernel adds those in
// order. So a row that most tokens have keeps many blocks busy, not one.

constexpr uint32_t kOutside = 0x7fffffffu;  // the row of a token outside of the table: the last one

__device__ uint32_t row_of(Key key) { return static_cast<uint32_t>(key >> 32); }
__device__ uint32_t token_of(Key key) { return static_cast<uint32_t>(key); }

constexpr int kSegment = 4096;  // tokens that are sorted without a merge, each compared with all
constexpr int kSortWarps = 16;
constexpr int kMergeWarps = 8;
constexpr int kSearches = 4;  // at once in a thread, since each waits for memory
constexpr int kAhead = 4;     // gradients that a thread reads before it adds them
constexpr int kSumThreads = 128;
constexpr int kSumPack = 4;
constexpr int kLooked = 8;  // windows that a block of add_partials has

// A block brings 32 keys to their places in their segment: each of its warps counts the smaller
// ones among some of the segment's.
__global__ void __launch_bounds__(kSortWarps * 32, 2)
    sort_segments(const int32_t* tokens, int64_t num_tokens, int64_t first_row, int64_t vocabulary,
                  Key* segments) {
  wait_for_previous_kernel();
  alignas(16) __shared__ uint32_t rows[kSegment];
  __shared__ uint32_t smaller[kSortWarps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t segment = int64_t{blockIdx.x} * 32 / kSegment * kSegment;
  const int size = static_cast<int>(std::min<int64_t>(kSegment, num_tokens - segment));
  const int own = static_cast<int>(blockIdx.x * int64_t{32} - segment);
#pragma unroll
  for (int first = 0; first < kSegment; first += kSortWarps * 32) {
    const int i = first + static_cast<int>(threadIdx.x);
    const int64_t row = i < size ? tokens[segment + i] - first_row : -1;
    rows[i] = row >= 0 && row < vocabulary ? static_cast<uint32_t>(row) : kOutside;
  }
  __syncthreads();
  const uint32_t row = rows[own + lane];
  uint32_t count = 0;
  // Where rows are equal, the first token's key is the smallest. Signs of differences take fewer
  // instructions than comparisons.
  const auto count_below = [&](int first, const auto& bound) {
#pragma unroll
    for (int i = 0; i < 32; ++i) count += (rows[first + i] - bound(i)) >> 31;
  };
  for (int first = warp * 32; first < size; first += kSortWarps * 32) {
    if (first < own) {
      count_below(first, [&](int) { return row + 1; });
    } else if (first > own) {
      count_below(first, [&](int) { return row; });
    } else {
      count_below(first, [&](int i) { return i < lane ? row + 1 : row; });
    }
  }
  smaller[warp][lane] = count;
  __syncthreads();
  if (warp > 0 || own + lane >= size) return;
  for (int i = 1; i < kSortWarps; ++i) count += smaller[i][lane];
  segments[segment + count] = Key{row} << 32 | static_cast<uint32_t>(segment + own + lane);
}

// A block brings 32 keys of one segment to their places among all; each of its warps counts the
// smaller ones in some of the segments.
__global__ void __launch_bounds__(kMergeWarps * 32, 4)
    merge_segments(const Key* segments, int64_t num_segments, int64_t num_tokens, Key* sorted) {
  wait_for_previous_kernel();
  __shared__ int64_t smaller[kMergeWarps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const auto key_of = [&](int64_t at) { return at < num_tokens ? segments[at] : ~Key{0}; };
  const Key key = key_of(int64_t{blockIdx.x} * 32 + lane);
  int64_t count = 0;
  for (int64_t first = warp * kSearches; first < num_segments; first += kMergeWarps * kSearches) {
    int below[kSearches] = {};
    const auto key_at = [&](int i, int at) {
      return key_of(std::min(first + i, num_segments - 1) * kSegment + at);
    };
#pragma unroll
    for (int step = kSegment / 2; step > 0; step /= 2) {
#pragma unroll
      for (int i = 0; i < kSearches; ++i) {
        if (key_at(i, below[i] + step - 1) < key) below[i] += step;
      }
    }
#pragma unroll
    for (int i = 0; i < kSearches; ++i) {
      if (first + i < num_segments) count += below[i] + (key_at(i, below[i]) < key ? 1 : 0);
    }
  }
  smaller[warp][lane] = count;
  __syncthreads();
  if (warp > 0) return;
  for (int i = 1; i < kMergeWarps; ++i) count += smaller[i][lane];
  if (token_of(key) < num_tokens) sorted[count] = key;
}

template <typename T, int n>
__global__ void __launch_bounds__(kSumThreads, 8)
    add_windows(const Key* sorted, int64_t num_tokens, RowsOf<const T> dx, RowsOf<float> sum,
                float* partial, int64_t cols) {
  wait_for_previous_kernel();
  __shared__ Key keys[kWindow + 2];  // and one on either side
  const int64_t col = (int64_t{blockIdx.x} * kSumThreads + threadIdx.x) * n;
  const int64_t num_windows = (num_tokens + kWindow - 1) / kWindow;
  for (int64_t window = blockIdx.y; window < num_windows; window += gridDim.y) {
    __syncthreads();  // keys may still be read
    if (threadIdx.x < kWindow + 2) {
      const int64_t at = window * kWindow + threadIdx.x - 1;
      const bool is_inside = at >= 0 && at < num_tokens && threadIdx.x <= kWindow;
      keys[threadIdx.x] = is_inside ? sorted[at] : Key{kOutside} << 32;
    }
    __syncthreads();
    if (col >= cols) continue;

    bool goes_on = true;  // the row, from the window before
    float total[n] = {};
    for (int begin = 1; begin <= kWindow; begin += kAhead) {
      Pack<T, n> gradients[kAhead];
      Pack<float, n> sums[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        // Keys that are not needed are read as well: a branch would make loads wait for each other.
        const Key key = keys[begin + i];
        gradients[i] = load_pack<n>(dx.at(token_of(key)) + col);
        sums[i] = load_pack<n>(sum.at(row_of(key) == kOutside ? 0 : row_of(key)) + col);
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const uint32_t row = row_of(keys[begin + i]);
        if (row == kOutside) break;
        if (row != row_of(keys[begin + i - 1])) {
          to_floats(total, sums[i]);
          goes_on = false;
        }
        float gradient[n];
        to_floats(gradient, gradients[i]);
        for (int j = 0; j < n; ++j) total[j] += gradient[j];
        if (row != row_of(keys[begin + i + 1])) {
          store_pack_global((goes_on ? partial + window * cols : sum.at(row)) + col,
                            from_floats<float>(total));
        }
      }
    }
  }
}

// Whether the row that `window` begins with comes from the window before, where it begins.
__device__ bool is_first_crossed(const Key* sorted, int64_t num_windows, int64_t window) {
  if (window >= num_windows) return false;
  const auto row_at = [&](int64_t at) { return row_of(sorted[std::max<int64_t>(at, 0)]); };
  const int64_t begin = window * kWindow;
  const uint32_t row = row_at(begin), before = row_at(begin - 1),
                 earlier = row_at(begin - kWindow - 1);
  return row != kOutside && row == before && (window == 1 || row != earlier);
}

// For each row that crosses into another window: sum[row] += its partial sums, in order. Few rows
// do, so a block looks at several windows at once.
template <int n>
__global__ void __launch_bounds__(kSumThreads, 6)
    add_partials(const Key* sorted, int64_t num_windows, const float* partial, RowsOf<float> sum,
                 int64_t cols) {
  wait_for_previous_kernel();
  const int lane = threadIdx.x % 32;
  const int64_t col = (int64_t{blockIdx.x} * kSumThreads + threadIdx.x) * n;
  const int64_t looked = 1 + int64_t{blockIdx.y} * kLooked;
  const bool crosses = lane < kLooked && is_first_crossed(sorted, num_windows, looked + lane);
  for (unsigned found = __ballot_sync(kAllLanes, crosses); found != 0; found &= found - 1) {
    const int64_t first = looked + __ffs(static_cast<int>(found)) - 1;
    const uint32_t row = row_of(sorted[first * kWindow]);
    int64_t end = first + 1;
    for (int more = 32; more == 32; end += more) {
      const int64_t window = end + lane;
      const unsigned others = __ballot_sync(
          kAllLanes, window >= num_windows || row_of(sorted[window * kWindow]) != row);
      more = others == 0 ? 32 : __ffs(static_cast<int>(others)) - 1;
    }
    if (col >= cols) continue;
    float total[n];
    to_floats(total, load_pack<n>(sum.at(row) + col));
#pragma unroll 8
    for (int64_t window = first; window < end; ++window) {
      const Pack<float, n> term = load_pack<n>(partial + window * cols + col);
      for (int j = 0; j < n; ++j) total[j] += term.at[j];
    }
    store_pack_global(sum.at(row) + col, from_floats<float>(total));
  }
}

int64_t num_segments(const KernelCall& call) { return blocks_for(call.inputs[1].rows(), kSegment); }

template <typename T, int n>
void add_sorted(const KernelCall& call, const Key* sorted, float* partial) {
  const View &dx = call.inputs[1], &sum = call.outputs[0];
  dim3 grid(blocks_for(sum.cols(), kSumThreads * n),
            static_cast<unsigned>(std::min<int64_t>(num_windows(call), 65535)));
  launch(call, grid, kSumThreads, add_windows<T, n>, sorted, dx.rows(), rows_of<const T>(dx),
         rows_of<float>(sum), partial, sum.cols());
  grid.y = blocks_for(num_windows(call) - 1, kLooked);
  launch(call, grid, kSumThreads, add_partials<n>, sorted, num_windows(call), partial,
         rows_of<float>(sum), sum.cols());
}

void run_dw(const KernelCall& call) {
  const View &dx = call.inputs[1], &sum = call.outputs[0];
  if (dx.rows() == 0 || sum.rows() == 0) return;
  Key* const segments = static_cast<Key*>(call.scratch);
  Key* const merged = segments + dx.rows();
  launch(call, blocks_for(dx.rows(), 32), kSortWarps * 32, sort_segments,
         call.inputs[0].as<const int32_t>(), dx.rows(), first_row(call), sum.rows(), segments);
  if (num_segments(call) > 1) {
    launch(call, blocks_for(dx.rows(), 32), kMergeWarps * 32, merge_segments, segments,
           num_segments(call), dx.rows(), merged);
  }
  const Key* const sorted = num_segments(call) > 1 ? merged : segments;
  float* const partial = reinterpret_cast<float*>(merged + dx.rows());
  with_type(dx.dtype, [&](auto type) {
    using T = decltype(type);
    if (are_packable(kSumPack, dx, sum)) {
      add_sorted<T, kSumPack>(call, sorted, partial);
    } else {
      add_sorted<T, 1>(call, sorted, partial);
    }
  });
}

}  // namespace

void add_embedding_cuda_kernels(KernelTable& table) {
  table["embedding"] = {.run = run};
  table["embedding_dw"] = {.run = run_dw};
}

}  // namespace skein
