#include <algorithm>

#include "skein/ops/cuda/largest_cuda.h"
#include "skein/ops/cuda/norm_backward_cuda.h"
#include "skein/ops/cuda/norm_groups.h"
#include "skein/ops/largest.h"
#include "skein/ops/rms_norm/rms_norm_cuda.h"

namespace skein {
namespace {

using namespace cuda;         // NOLINT(google-build-using-namespace)
using namespace norm_groups;  // NOLINT(google-build-using-namespace)

// A block has one group of tokens, of which it takes kRows at once.
template <typename T, typename W, int kThreads, int kPacks, int kRows, bool has_dh, bool finds>
__global__ void __launch_bounds__(kThreads, kThreads == 256 ? 2 : 1)
    backward(RowsOf<const T> dy, RowsOf<const T> dh, RowsOf<const T> h, const float* rstd,
             const W* w, RowsOf<T> dx, float* partial, int64_t rows, int cols, float inverse_cols,
             int group, [[maybe_unused]] unsigned* found) {
  wait_for_previous_kernel();
  using Ring = RowRing<T, kThreads, kPacks, kRows, has_dh>;
  constexpr int n = Ring::n;
  const int64_t begin = int64_t{blockIdx.x} * group;
  const int num_rows = static_cast<int>(std::min(rows - begin, int64_t{group}));
  const auto each = [&](const auto& body) {
    for_packs<kPacks, n>(static_cast<int>(threadIdx.x), kPacks, body);
  };
  // Behind the last row it copies that one again.
  const auto copy = [&](int step) {
#pragma unroll
    for (int r = 0; r < kRows && step * kRows < num_rows; ++r) {
      const int64_t row = begin + std::min(step * kRows + r, num_rows - 1);
      each([&](int i, int col) {
        const bool inside = col < cols;
        copy_pack<n>(Ring::place(step, Ring::kDy, r, i), dy.at(row) + col, inside);
        copy_pack<n>(Ring::place(step, Ring::kH, r, i), h.at(row) + col, inside);
        if constexpr (has_dh) {
          copy_pack<n>(Ring::place(step, Ring::kDh, r, i), dh.at(row) + col, inside);
        }
      });
    }
    commit_copies();
  };
  for (int step = 0; step < Ring::kSteps; ++step) copy(step);

  const int lane = static_cast<int>(threadIdx.x) % 32;
  // A group has at most 16 rows. Those that do not exist count as zero.
  const float rstd_of_lane = lane < num_rows ? rstd[begin + lane] : 0.0f;
  constexpr bool keeps_weights = kThreads < 1024;  // else registers are few
  Pack<W, n> weights[kPacks];
  if constexpr (keeps_weights) {
    each([&](int i, int col) { weights[i] = read<true, n>(w, col, cols); });
  }
  float dw[kPacks][n] = {};
  [[maybe_unused]] float largest = 0;
  for (int step = 0; step * kRows < num_rows; ++step) {
    wait_for_own_copies<Ring::kSteps - 1>();
    Pack<T, n> grads[kRows][kPacks], values[kRows][kPacks];
    float scales[kRows], dots[kRows] = {};
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      scales[r] = __shfl_sync(kAllLanes, rstd_of_lane, step * kRows + r);
    }
    each([&](int i, [[maybe_unused]] int col) {
      if constexpr (!keeps_weights) weights[i] = read<true, n>(w, col, cols);
      float weight[n];
      to_floats(weight, weights[i]);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        grads[r][i] = load_pack<n>(Ring::place(step, Ring::kDy, r, i));
        values[r][i] = load_pack<n>(Ring::place(step, Ring::kH, r, i));
        float grad[n], value[n];
        to_floats(grad, grads[r][i]);
        to_floats(value, values[r][i]);
        for (int j = 0; j < n; ++j) {
          const float product = grad[j] * value[j];
          dw[i][j] = fmaf(product, scales[r], dw[i][j]);
          dots[r] = fmaf(product, weight[j], dots[r]);
        }
      }
    });
    sum_over_warps(dots, step % 2);

    each([&](int i, int col) {
      if constexpr (!keeps_weights) weights[i] = read<true, n>(w, col, cols);
      float weight[n];
      to_floats(weight, weights[i]);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float scale = scales[r];
        const float along_h = scale * scale * scale * (dots[r] * inverse_cols);
        float grad[n], value[n], result[n];
        to_floats(grad, grads[r][i]);
        to_floats(value, values[r][i]);
        for (int j = 0; j < n; ++j) {
          result[j] = fmaf(-value[j], along_h, grad[j] * weight[j] * scale);
        }
        if constexpr (has_dh) {
          to_floats(value, load_pack<n>(Ring::place(step, Ring::kDh, r, i)));
          for (int j = 0; j < n; ++j) result[j] += value[j];
        }
        const int row = step * kRows + r;
        if (row < num_rows) {
          const Pack<T, n> rounded = from_floats<T>(result);
          if constexpr (finds) largest = larger(largest, rounded);
          write<true>(dx.at(begin + row), col, cols, rounded);
        }
      }
    });
    copy(step + Ring::kSteps);
  }
  each([&](int i, int col) {
    write<true>(partial + int64_t{blockIdx.x} * cols, col, cols, from_floats<float>(dw[i]));
  });
  if constexpr (finds) keep_largest(largest, found);
}

// The same of any rows, which are read where they are used, in elements.
template <typename T, typename W, bool finds>
__global__ void __launch_bounds__(1024, 1)
    backward_of_any(RowsOf<const T> dy, RowsOf<const T> dh, RowsOf<const T> h, const float* rstd,
                    const W* w, RowsOf<T> dx, float* partial, int64_t rows, int cols,
                    float inverse_cols, int num_packs, int group,
                    [[maybe_unused]] unsigned* found) {
  wait_for_previous_kernel();
  constexpr int n = kPackOf<T>;
  const int64_t begin = int64_t{blockIdx.x} * group, end = std::min(rows, begin + group);
  [[maybe_unused]] float largest = 0;
  const auto each = [&](const auto& body) {
    for_packs<0, n>(static_cast<int>(threadIdx.x), num_packs, [&](int, int col) { body(col); });
  };
  for (int64_t row = begin; row < end; ++row) {
    const float scale = rstd[row];
    float dots[1] = {};
    float grad[n], value[n], weight[n];
    const auto fetch = [&](int col) {
      to_floats(grad, read<false, n>(dy.at(row), col, cols));
      to_floats(value, read<false, n>(h.at(row), col, cols));
      to_floats(weight, read<false, n>(w, col, cols));
    };
    each([&](int col) {
      fetch(col);
      for (int j = 0; j < n; ++j) dots[0] = fmaf(grad[j] * value[j], weight[j], dots[0]);
    });
    sum_over_warps(dots, static_cast<int>(row - begin) % 2);
    const float along_h = scale * scale * scale * (dots[0] * inverse_cols);
    each([&](int col) {
      fetch(col);
      float result[n];
      for (int j = 0; j < n; ++j) {
        result[j] = fmaf(-value[j], along_h, grad[j] * weight[j] * scale);
      }
      if (dh.data != nullptr) {
        to_floats(value, read<false, n>(dh.at(row), col, cols));
        for (int j = 0; j < n; ++j) result[j] += value[j];
      }
      const Pack<T, n> rounded = from_floats<T>(result);
      if constexpr (finds) largest = larger(largest, rounded);
      write<false>(dx.at(row), col, cols, rounded);
    });
  }
  each([&](int col) {
    float dw[n] = {};
    for (int64_t row = begin; row < end; ++row) {
      float grad[n], value[n];
      to_floats(grad, read<false, n>(dy.at(row), col, cols));
      to_floats(value, read<false, n>(h.at(row), col, cols));
      for (int j = 0; j < n; ++j) dw[j] = fmaf(grad[j] * value[j], rstd[row], dw[j]);
    }
    write<false>(partial + int64_t{blockIdx.x} * cols, col, cols, from_floats<float>(dw));
  });
  if constexpr (finds) keep_largest(largest, found);
}

template <typename T, typename W, bool finds>
void launch_any(const KernelCall& call, Spread spread, unsigned* found) {
  const View& dx = call.outputs[0];
  launch(call, num_groups(dx), spread.warps * 32, backward_of_any<T, W, finds>,
         rows_of<const T>(call.inputs[0]), rows_of<const T>(call.inputs[1]),
         rows_of<const T>(call.inputs[2]), call.inputs[3].as<const float>(),
         call.inputs[4].as<const W>(), rows_of<T>(dx), static_cast<float*>(call.scratch), dx.rows(),
         static_cast<int>(dx.cols()), 1.0f / static_cast<float>(dx.cols()), spread.packs,
         group_tokens(dx), found);
}

template <typename T, typename W, int kThreads, int kPacks, int kRows, bool finds>
void launch_aligned(const KernelCall& call, Spread spread, unsigned* found) {
  const View& dx = call.outputs[0];
  const int group = group_tokens(dx);
  const unsigned threads = spread.warps * 32;
  const auto launch_with = [&](auto has_dh) {
    const int bytes = RowRing<T, kThreads, kPacks, kRows, has_dh>::bytes(group / kRows, threads);
    if (bytes > most_memory_of_block()) return launch_any<T, W, finds>(call, spread, found);
    launch_with_memory(call, num_groups(dx), threads, bytes,
                       backward<T, W, kThreads, kPacks, kRows, has_dh, finds>,
                       rows_of<const T>(call.inputs[0]), rows_of<const T>(call.inputs[1]),
                       rows_of<const T>(call.inputs[2]), call.inputs[3].as<const float>(),
                       call.inputs[4].as<const W>(), rows_of<T>(dx),
                       static_cast<float*>(call.scratch), dx.rows(), static_cast<int>(dx.cols()),
                       1.0f / static_cast<float>(dx.cols()), group, found);
  };
  call.has_input(1) ? launch_with(std::true_type()) : launch_with(std::false_type());
}

template <typename T, typename W, bool finds>
void run_finding(const KernelCall& call, unsigned* found) {
  const View& dx = call.outputs[0];
  const int64_t packs = blocks_for(dx.cols(), kPackOf<T>);
  const Spread spread = spread_over(packs, packs <= 256 ? 1 : 2);
  const unsigned threads = spread.warps * 32;
  if (!are_packable(kPackOf<T>, call.inputs[0], call.inputs[1], call.inputs[2], call.inputs[4],
                    dx) ||
      spread.packs > 2 || (threads > 512 && sizeof(W) > sizeof(T))) {
    return launch_any<T, W, finds>(call, spread, found);
  }
  if (spread.packs == 1) return launch_aligned<T, W, 256, 1, 2, finds>(call, spread, found);
  if (threads <= 256) return launch_aligned<T, W, 256, 2, 1, finds>(call, spread, found);
  if (threads <= 512) return launch_aligned<T, W, 512, 2, 1, finds>(call, spread, found);
  launch_aligned<T, W, 1024, 2, 1, finds>(call, spread, found);
}

template <typename T, typename W>
void run_as(const KernelCall& call) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (finds_largest(call.attrs)) {
      return run_finding<T, W, true>(call, start_largest(call, call.outputs.back()));
    }
  }
  run_finding<T, W, false>(call, nullptr);
}

}  // namespace

void run_rms_norm_backward(const KernelCall& call) {
  const View& dx = call.outputs[0];
  with_types(dx, call.inputs[4],
             [&](auto row, auto w) { run_as<decltype(row), decltype(w)>(call); });
  add_group_sums(call, static_cast<float*>(call.scratch), num_groups(dx),
                 static_cast<int>(dx.cols()), call.outputs[1].as<float>());
}

}  // namespace skein
