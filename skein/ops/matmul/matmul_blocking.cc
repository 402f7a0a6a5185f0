#include "skein/ops/matmul/matmul_blocking.h"

#include <omp.h>
#include <unistd.h>

#include <algorithm>

#include "skein/base/text/units.h"

namespace skein::matmul_cpu {
namespace {

// Packed operands stay within the last-level cache.
constexpr int64_t kMaxPackedBytes = 4 << 20;
// Unfinished sums that would take more go band by band of rows, each of which packs all of B: fewer
// rows than these are not worth it.
constexpr int64_t kMaxUnfinishedBytes = 16 << 20;
constexpr int64_t kMinBandRows = 8 * kTaskRows;

// What the caches would not keep until it is read: twice the L2 of the threads, or this. With two
// cores of 2 MiB: of 4 MiB upwards a normalization that reads it next loses more than the product
// gains, of 16 the product gains less.
constexpr int64_t kMinStreamBytes = 8 << 20;

// An even share of the lanes that fits the budget, a multiple of `multiple`.
int64_t lanes_that_fit(int64_t lanes, int64_t steps, int64_t multiple) {
  const int64_t fit = kMaxPackedBytes / std::max<int64_t>(steps * 4, 1) / multiple * multiple;
  const int64_t shares = ceil_div(lanes, std::max(fit, multiple));
  return round_up(ceil_div(lanes, std::max<int64_t>(shares, 1)), multiple);
}

int64_t unfinished_bytes(int64_t rows, int64_t cols) {
  return round_up(rows, kTaskRows) * round_up(cols, kTaskCols) * 4;
}

// An even share of the rows whose unfinished sums fit.
int64_t rows_of_a_band(const Matmul& matmul) {
  const int64_t bands = ceil_div(unfinished_bytes(matmul.rows, matmul.cols), kMaxUnfinishedBytes);
  return round_up(ceil_div(matmul.rows, std::max<int64_t>(bands, 1)), kTaskRows);
}

Cut choose_cut(const Matmul& matmul, const MatmulKernel& kernel, bool pack_a) {
  if (matmul.packed_b != nullptr || matmul.num_terms != 1 ||
      steps_of(matmul.terms[0], kernel) <= kMaxPieceSteps) {
    return Cut::kNone;
  }
  if (matmul.c.accumulate) return Cut::kAccumulate;
  const int64_t rows = rows_of_a_band(matmul);
  const bool fits = unfinished_bytes(rows, matmul.cols) <= kMaxUnfinishedBytes;
  const bool pays = rows >= std::min(matmul.rows, kMinBandRows);
  return pack_a && fits && pays ? Cut::kKeepSums : Cut::kNone;
}

bool can_stream(const Matmul& matmul, const MatmulKernel& kernel) {
  const MatmulStore& c = matmul.c;
  const int64_t size = size_of(c.dtype), line = 64;
  return kernel.streams && (!c.accumulate || c.from_zero) &&
         matmul.rows * matmul.cols * size >=
             std::max(kMinStreamBytes, 2 * omp_get_max_threads() * l2_bytes()) &&
         reinterpret_cast<uintptr_t>(c.out) % line == 0 && c.row_stride * size % line == 0 &&
         matmul.cols * size % line == 0;
}

}  // namespace

int64_t l2_bytes() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  static const int64_t bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes;
#else
  return 0;
#endif
}

int64_t steps_of(const MatmulTerm& term, const MatmulKernel& kernel) {
  return round_up(ceil_div(term.depth, kernel.elements_a_step), kernel.block_steps);
}

Blocking choose_blocking(const Matmul& matmul, const MatmulKernel& kernel) {
  Blocking blocking;
  for (int t = 0; t < matmul.num_terms; ++t) {
    const MatmulTerm& term = matmul.terms[t];
    blocking.steps += steps_of(term, kernel);
    const bool steps_lie_ready = kernel.elements_a_step * size_of(matmul.dtype) == 4 &&
                                 term.depth % (kernel.elements_a_step * kernel.block_steps) == 0;
    blocking.pack_a = blocking.pack_a || term.a.depth_is_row || !steps_lie_ready;
  }
  blocking.cut = choose_cut(matmul, kernel, blocking.pack_a);
  blocking.stream = blocking.cut == Cut::kNone && can_stream(matmul, kernel);
  if (blocking.cut != Cut::kNone) blocking.steps = kMaxPieceSteps;
  blocking.band_rows = matmul.rows;
  if (blocking.cut == Cut::kKeepSums) {
    blocking.band_rows = rows_of_a_band(matmul);
    blocking.sums_bytes = unfinished_bytes(blocking.band_rows, matmul.cols);
  }
  const int64_t all_cols = round_up(matmul.cols, kernel.panel_cols);
  if (matmul.packed_b != nullptr) {
    blocking.block_cols = all_cols;
  } else {
    blocking.block_cols =
        std::min(lanes_that_fit(matmul.cols, blocking.steps, kTaskCols), all_cols);
    blocking.packed_b_bytes = blocking.block_cols * blocking.steps * 4;
  }
  blocking.block_rows = blocking.band_rows;
  if (blocking.pack_a) {
    blocking.block_rows = std::min(lanes_that_fit(blocking.band_rows, blocking.steps, kTaskRows),
                                   round_up(blocking.band_rows, kTaskRows));
    blocking.packed_a_bytes = blocking.block_rows * blocking.steps * 4;
  }
  return blocking;
}

}  // namespace skein::matmul_cpu
