#include <algorithm>

#include "skein/ops/cuda/largest_cuda.h"
#include "skein/ops/cuda/norm_backward_cuda.h"
#include "skein/ops/cuda/norm_groups.h"
#include "skein/ops/largest.h"
#include "skein/ops/layer_norm/layer_norm_cuda.h"

namespace skein {
namespace {

using namespace cuda;         // NOLINT(google-build-using-namespace)
using namespace norm_groups;  // NOLINT(google-build-using-namespace)

// What the kernels read and write beside rows.
template <typename W>
struct Operands {
  const float *mean, *rstd;
  const W* w;
  float *dw, *db;  // [groups, cols]; db is null if there is no bias
};

// A block has one group of tokens, of which it takes kRows at once.
template <typename T, typename W, int kThreads, int kPacks, int kRows, bool has_dh, bool finds>
__global__ void __launch_bounds__(kThreads, kThreads == 256 ? 2 : 1)
    backward(RowsOf<const T> dy, RowsOf<const T> dh, RowsOf<const T> h, Operands<W> other,
             RowsOf<T> dx, int64_t rows, int cols, float inverse_cols, int group,
             [[maybe_unused]] unsigned* found) {
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
  // A group has at most 16 rows. Those that do not exist have rstd 0.
  const float mean_of_lane = lane < num_rows ? other.mean[begin + lane] : 0.0f;
  const float rstd_of_lane = lane < num_rows ? other.rstd[begin + lane] : 0.0f;
  Pack<W, n> weights[kPacks];
  each([&](int i, int col) { weights[i] = read<true, n>(other.w, col, cols); });
  float dw[kPacks][n] = {}, db[kPacks][n] = {};
  [[maybe_unused]] float largest = 0;
  for (int step = 0; step * kRows < num_rows; ++step) {
    wait_for_own_copies<Ring::kSteps - 1>();
    Pack<T, n> grads[kRows][kPacks], values[kRows][kPacks];
    float shifts[kRows], scales[kRows], sums[2 * kRows] = {};  // of dn, then of dn normed
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      shifts[r] = __shfl_sync(kAllLanes, mean_of_lane, step * kRows + r);
      scales[r] = __shfl_sync(kAllLanes, rstd_of_lane, step * kRows + r);
    }
    each([&](int i, int) {
      float weight[n];
      to_floats(weight, weights[i]);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const bool exists = step * kRows + r < num_rows;
        grads[r][i] = load_pack<n>(Ring::place(step, Ring::kDy, r, i));
        values[r][i] = load_pack<n>(Ring::place(step, Ring::kH, r, i));
        float grad[n], value[n];
        to_floats(grad, grads[r][i]);
        to_floats(value, values[r][i]);
        for (int j = 0; j < n; ++j) {
          const float normed = (value[j] - shifts[r]) * scales[r], dn = grad[j] * weight[j];
          dw[i][j] = fmaf(grad[j], normed, dw[i][j]);
          db[i][j] += exists ? grad[j] : 0.0f;
          sums[r] += dn;
          sums[kRows + r] = fmaf(dn, normed, sums[kRows + r]);
        }
      }
    });
    sum_over_warps(sums, step % 2);

    each([&](int i, int col) {
      float weight[n];
      to_floats(weight, weights[i]);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float mean_dn = sums[r] * inverse_cols, along_n = sums[kRows + r] * inverse_cols;
        float grad[n], value[n], result[n];
        to_floats(grad, grads[r][i]);
        to_floats(value, values[r][i]);
        for (int j = 0; j < n; ++j) {
          const float normed = (value[j] - shifts[r]) * scales[r];
          result[j] = fmaf(-normed, along_n, grad[j] * weight[j] - mean_dn) * scales[r];
        }
        if constexpr (has_dh) {
          to_floats(value, load_pack<n>(Ring::place(step, Ring::kDh, r, i)));
          for (int j = 0; j < n; ++j) result[j] += value[j];
        }
        const int row = step * kRows + r;
        if (row < num_rows) {
          const Pack<T, n> rounded = from_floats<T>(result);
          if constexpr (finds) {
            if (col < cols) largest = larger(largest, rounded);
          }
          write<true>(dx.at(begin + row), col, cols, rounded);
        }
      }
    });
    copy(step + Ring::kSteps);
  }
  const int64_t first = int64_t{blockIdx.x} * cols;
  each([&](int i, int col) {
    write<true>(other.dw + first, col, cols, from_floats<float>(dw[i]));
    if (other.db != nullptr) write<true>(other.db + first, col, cols, from_floats<float>(db[i]));
  });
  if constexpr (finds) keep_largest(largest, found);
}

// The same of any rows, which are read where they are used, in elements.
template <typename T, typename W, bool finds>
__global__ void __launch_bounds__(1024, 1)
    backward_of_any(RowsOf<const T> dy, RowsOf<const T> dh, RowsOf<const T> h, Operands<W> other,
                    RowsOf<T> dx, int64_t rows, int cols, float inverse_cols, int num_packs,
                    int group, [[maybe_unused]] unsigned* found) {
  wait_for_previous_kernel();
  constexpr int n = kPackOf<T>;
  const int64_t begin = int64_t{blockIdx.x} * group, end = std::min(rows, begin + group);
  [[maybe_unused]] float largest = 0;
  const auto each = [&](const auto& body) {
    for_packs<0, n>(static_cast<int>(threadIdx.x), num_packs, [&](int, int col) { body(col); });
  };
  float grad[n], normed[n], weight[n];
  const auto fetch = [&](int64_t row, int col) {
    to_floats(grad, read<false, n>(dy.at(row), col, cols));
    to_floats(normed, read<false, n>(h.at(row), col, cols));
    to_floats(weight, read<false, n>(other.w, col, cols));
    const float mean = other.mean[row], rstd = other.rstd[row];
    for (float& value : normed) value = (value - mean) * rstd;
  };
  for (int64_t row = begin; row < end; ++row) {
    float sums[2] = {};  // of dn, and of dn normed; beyond the row dn is 0
    each([&](int col) {
      fetch(row, col);
      for (int j = 0; j < n; ++j) {
        const float dn = grad[j] * weight[j];
        sums[0] += dn;
        sums[1] = fmaf(dn, normed[j], sums[1]);
      }
    });
    sum_over_warps(sums, static_cast<int>(row - begin) % 2);
    const float mean_dn = sums[0] * inverse_cols, along_n = sums[1] * inverse_cols;
    const float scale = other.rstd[row];
    each([&](int col) {
      fetch(row, col);
      float result[n];
      for (int j = 0; j < n; ++j) {
        const float across = fmaf(-normed[j], along_n, grad[j] * weight[j] - mean_dn);
        result[j] = col + j < cols ? across * scale : 0.0f;
      }
      if (dh.data != nullptr) {
        float added[n];
        to_floats(added, read<false, n>(dh.at(row), col, cols));
        for (int j = 0; j < n; ++j) result[j] += added[j];
      }
      const Pack<T, n> rounded = from_floats<T>(result);
      if constexpr (finds) largest = larger(largest, rounded);
      write<false>(dx.at(row), col, cols, rounded);
    });
  }
  const int64_t first = int64_t{blockIdx.x} * cols;
  each([&](int col) {
    float dw[n] = {}, db[n] = {};
    for (int64_t row = begin; row < end; ++row) {
      fetch(row, col);
      for (int j = 0; j < n; ++j) {
        dw[j] = fmaf(grad[j], normed[j], dw[j]);
        db[j] += grad[j];
      }
    }
    write<false>(other.dw + first, col, cols, from_floats<float>(dw));
    if (other.db != nullptr) write<false>(other.db + first, col, cols, from_floats<float>(db));
  });
  if constexpr (finds) keep_largest(largest, found);
}

bool has_bias(const KernelCall& call) { return call.has_input(7); }

float* partial_of(const KernelCall& call, int sum) {
  const View& dx = call.outputs[0];
  return static_cast<float*>(call.scratch) + sum * int64_t{num_groups(dx)} * dx.cols();
}

template <typename W>
Operands<W> operands_of(const KernelCall& call) {
  return {call.inputs[3].as<const float>(), call.inputs[4].as<const float>(),
          call.inputs[5].as<const W>(), partial_of(call, 0),
          has_bias(call) ? partial_of(call, 1) : nullptr};
}

template <typename T, typename W, bool finds>
void launch_any(const KernelCall& call, Spread spread, unsigned* found) {
  const View& dx = call.outputs[0];
  launch(call, num_groups(dx), spread.warps * 32, backward_of_any<T, W, finds>,
         rows_of<const T>(call.inputs[0]), rows_of<const T>(call.inputs[1]),
         rows_of<const T>(call.inputs[2]), operands_of<W>(call), rows_of<T>(dx), dx.rows(),
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
                       rows_of<const T>(call.inputs[2]), operands_of<W>(call), rows_of<T>(dx),
                       dx.rows(), static_cast<int>(dx.cols()), 1.0f / static_cast<float>(dx.cols()),
                       group, found);
  };
  call.has_input(1) ? launch_with(std::true_type()) : launch_with(std::false_type());
}

// More than 512 threads would leave each too few registers for dw and db.
template <typename T, typename W, bool finds>
void run_finding(const KernelCall& call, unsigned* found) {
  const View& dx = call.outputs[0];
  const int64_t packs = blocks_for(dx.cols(), kPackOf<T>);
  const Spread spread = spread_over(packs, packs <= 256 ? 1 : 2);
  const unsigned threads = spread.warps * 32;
  if (!are_packable(kPackOf<T>, call.inputs[0], call.inputs[1], call.inputs[2], call.inputs[5],
                    dx) ||
      spread.packs > 2 || threads > 512) {
    return launch_any<T, W, finds>(call, spread, found);
  }
  if (spread.packs == 1) return launch_aligned<T, W, 256, 1, 2, finds>(call, spread, found);
  if (threads <= 256) return launch_aligned<T, W, 256, 2, 1, finds>(call, spread, found);
  launch_aligned<T, W, 512, 2, 1, finds>(call, spread, found);
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

void run_layer_norm_backward(const KernelCall& call) {
  const View& dx = call.outputs[0];
  with_types(dx, call.inputs[5],
             [&](auto row, auto w) { run_as<decltype(row), decltype(w)>(call); });
  for (int sum = 0; sum < (has_bias(call) ? 2 : 1); ++sum) {
    add_group_sums(call, partial_of(call, sum), num_groups(dx), static_cast<int>(dx.cols()),
                   call.outputs[1 + sum].as<float>());
  }
}

}  // namespace skein
