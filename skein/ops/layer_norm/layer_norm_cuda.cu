#include "skein/ops/cuda/largest_cuda.h"
#include "skein/ops/cuda/norm_rows_cuda.h"
#include "skein/ops/cuda/reduce_cuda.h"
#include "skein/ops/largest.h"
#include "skein/ops/layer_norm/layer_norm_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kWarpsOfRows = 4;  // a block, where a warp has a whole row

// A block computes one row, or each of its warps one. `b` may be null.
template <typename T, typename W, int kPacks, bool one_warp, bool has_residual, bool finds>
__global__ void __launch_bounds__(kPacks > 0 ? 512 : 1024, 1)
    forward(RowsOf<const T> x, RowsOf<const T> residual, const W* w, const W* b, RowsOf<T> y,
            RowsOf<T> h, float* means, float* rstds, int64_t rows, int cols, float inverse_cols,
            int num_packs, float epsilon, [[maybe_unused]] unsigned* found) {
  wait_for_previous_kernel();
  constexpr int n = kPackOf<T>, kSlots = std::max(kPacks, 1);
  constexpr bool is_kept = kPacks > 0;
  const int thread = one_warp ? threadIdx.x % 32 : threadIdx.x;
  const int64_t row =
      one_warp ? int64_t{blockIdx.x} * kWarpsOfRows + threadIdx.x / 32 : int64_t{blockIdx.x};
  if (row >= rows) return;

  Pack<T, n> values[kSlots], residuals[kSlots];
  Pack<W, n> weights[kSlots], biases[kSlots] = {};
  const auto each = [&](const auto& body) { for_packs<kPacks, n>(thread, num_packs, body); };
  const auto fetch_terms = [&](int i, int col) {
    values[i] = read<is_kept, n>(x.at(row), col, cols);
    if constexpr (has_residual) residuals[i] = read<is_kept, n>(residual.at(row), col, cols);
  };
  const auto fetch_weights = [&](int i, int col) {
    weights[i] = read<is_kept, n>(w, col, cols);
    if (b != nullptr) biases[i] = read<is_kept, n>(b, col, cols);
  };
  const auto fetch_sum = [&](int i, int col) {
    values[i] = read<is_kept, n>(has_residual ? h.at(row) : x.at(row), col, cols);
  };
  const auto sum_of_row = [&](float of_thread) {
    return one_warp ? warp_reduce(of_thread, Sum()) : block_sum(of_thread);
  };
  if constexpr (is_kept) {
    each([&](int i, int col) {
      fetch_terms(i, col);
      fetch_weights(i, col);
    });
  }

  float sum = 0;
  each([&](int i, int col) {
    if constexpr (!is_kept) fetch_terms(i, col);
    float value[n];
    to_floats(value, values[i]);
    if constexpr (has_residual) {
      float added[n];
      to_floats(added, residuals[i]);
      for (int j = 0; j < n; ++j) value[j] += added[j];
      values[i] = from_floats<T>(value);
      to_floats(value, values[i]);
      write<is_kept>(h.at(row), col, cols, values[i]);
    }
    for (int j = 0; j < n; ++j) sum += value[j];
  });
  const float mean = sum_of_row(sum) * inverse_cols;

  float squares = 0;
  each([&](int i, int col) {
    if constexpr (!is_kept) fetch_sum(i, col);
    float value[n];
    to_floats(value, values[i]);
    for (int j = 0; j < n; ++j) {
      const float centred = col + j < cols ? value[j] - mean : 0.0f;
      squares = fmaf(centred, centred, squares);
    }
  });
  const float scale = 1.0f / sqrtf(fmaf(sum_of_row(squares), inverse_cols, epsilon));
  if (thread == 0) {
    means[row] = mean;
    rstds[row] = scale;
  }

  [[maybe_unused]] float largest = 0;
  each([&](int i, int col) {
    if constexpr (!is_kept) {
      fetch_sum(i, col);
      fetch_weights(i, col);
    }
    float value[n], weight[n], bias[n];
    to_floats(value, values[i]);
    to_floats(weight, weights[i]);
    to_floats(bias, biases[i]);
    for (int j = 0; j < n; ++j) value[j] = fmaf((value[j] - mean) * scale, weight[j], bias[j]);
    const Pack<T, n> result = from_floats<T>(value);
    // Beyond the row weight and bias are 0, so that nothing is larger there.
    if constexpr (finds) largest = larger(largest, result);
    write<is_kept>(y.at(row), col, cols, result);
  });
  if constexpr (finds && one_warp) {
    largest = warp_reduce(largest, Max());
    if (thread == 0) atomicMax(found, __float_as_uint(largest));
  } else if constexpr (finds) {
    keep_largest(largest, found);
  }
}

template <typename T, typename W, int kPacks, bool one_warp, bool finds>
void launch_finding(const KernelCall& call, Spread spread, unsigned* found) {
  const View& y = call.outputs[0];
  const unsigned rows_of_block = one_warp ? kWarpsOfRows : 1;
  launch(call, blocks_for(y.rows(), rows_of_block), spread.warps * 32 * rows_of_block,
         call.has_input(1) ? forward<T, W, kPacks, one_warp, true, finds>
                           : forward<T, W, kPacks, one_warp, false, finds>,
         rows_of<const T>(call.inputs[0]), rows_of<const T>(call.inputs[1]),
         call.inputs[2].as<const W>(), call.has_input(3) ? call.inputs[3].as<const W>() : nullptr,
         rows_of<T>(y), rows_of<T>(call.outputs[1]), call.outputs[2].as<float>(),
         call.outputs[3].as<float>(), y.rows(), static_cast<int>(y.cols()),
         1.0f / static_cast<float>(y.cols()), spread.packs,
         static_cast<float>(call.attrs.real("epsilon")), found);
}

template <typename T, typename W, int kPacks, bool one_warp>
void launch_forward(const KernelCall& call, Spread spread) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (finds_largest(call.attrs)) {
      return launch_finding<T, W, kPacks, one_warp, true>(call, spread,
                                                          start_largest(call, call.outputs.back()));
    }
  }
  launch_finding<T, W, kPacks, one_warp, false>(call, spread, nullptr);
}

template <typename T, typename W>
void run_as(const KernelCall& call) {
  const View& y = call.outputs[0];
  const int64_t packs = blocks_for(y.cols(), kPackOf<T>);
  const Spread spread = spread_over(packs, packs <= 128 || packs > 1024 ? 4 : 2);
  if (!are_packable(kPackOf<T>, call.inputs[0], call.inputs[1], call.inputs[2], call.inputs[3], y,
                    call.outputs[1]) ||
      spread.warps > 16) {
    return launch_forward<T, W, 0, false>(call, spread);
  }
  if (spread.warps == 1) return launch_forward<T, W, 4, true>(call, spread);
  spread.packs == 2 ? launch_forward<T, W, 2, false>(call, spread)
                    : launch_forward<T, W, 4, false>(call, spread);
}

void run(const KernelCall& call) {
  with_types(call.outputs[0], call.inputs[2],
             [&](auto row, auto w) { run_as<decltype(row), decltype(w)>(call); });
}

}  // namespace

void add_layer_norm_cuda_kernels(KernelTable& table) {
  table["layer_norm"] = {.run = run};
  table["layer_norm_backward"] = {.run = run_layer_norm_backward};
}

}  // namespace skein
