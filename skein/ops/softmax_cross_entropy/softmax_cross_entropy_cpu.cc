#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/softmax_cross_entropy/softmax_cross_entropy_cpu.cc"
#include "hwy/foreach_target.h"
#include "skein/ir/kernel.h"
#include "skein/ops/simd/softmax_row-inl.h"
#include "skein/ops/softmax_cross_entropy/softmax_cross_entropy.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;
using sm::largest;
using sm::sum_of_exp;
using sm::VF32;

// The statistics of one row over the whole vocabulary, and the label's index among `cols` logits.
struct RowStatistics {
  float most, sum;
  float label_logit;
  int64_t label;  // may be out of range

  float loss() const { return std::log(sum) - (label_logit - most); }
};

// Zero for the columns from `cols` to `all`, which pad the vocabulary.
template <typename T, typename G>
void write_gradient(const RowStatistics& row, const T* x, size_t cols, size_t all, G* dx) {
  const sm::F32 d;
  const size_t step = hn::Lanes(d);
  const float probability = std::exp(row.label_logit - row.most) / row.sum;
  const VF32 shift = hn::Set(d, row.most), scale = hn::Set(d, 1.0f / row.sum);
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    const VF32 e = sm::exp(hn::Sub(sm::load(d, x + i, n), shift));
    sm::store(hn::Mul(e, scale), d, dx + i, n);
  }
  if (row.label >= 0 && row.label < static_cast<int64_t>(cols)) {
    dx[row.label] = G(probability - 1.0f);
  }
  std::memset(static_cast<void*>(dx + cols), 0, (all - cols) * sizeof(G));
}

template <typename T>
const T* logits_of(const KernelCall& call, int64_t row) {
  return call.inputs[0].as<const T>() + row * call.inputs[0].row_stride;
}

template <typename T, typename G>
void row_as(const KernelCall& call, int64_t row) {
  const size_t cols = columns_that_count(call), all = call.inputs[0].cols();
  const T* x = logits_of<T>(call, row);
  G* dx = call.outputs[1].as<G>() + row * call.outputs[1].row_stride;
  float& loss = call.outputs[0].as<float>()[row];
  const int64_t label = call.inputs[1].as<const int32_t>()[row];
  if (label < 0 || label >= static_cast<int64_t>(cols)) {
    loss = 0.0f;
    std::memset(static_cast<void*>(dx), 0, all * sizeof(G));
    return;
  }
  const float most = largest(x, cols);
  const RowStatistics known{most, sum_of_exp(x, cols, most), static_cast<float>(x[label]), label};
  loss = known.loss();
  write_gradient(known, x, cols, all, dx);
}

// ---- a split vocabulary ----

template <typename T>
void stats_as(const KernelCall& call, int64_t row) {
  const int64_t cols = columns_that_count(call);
  const T* x = logits_of<T>(call, row);
  float* stats = call.outputs[0].as<float>() + row * call.outputs[0].row_stride;
  const int64_t label = call.inputs[1].as<const int32_t>()[row] - call.attrs.integer("first_logit");
  const float most = cols == 0 ? -HUGE_VALF : largest(x, cols);
  stats[0] = most;
  // If all logits here are -infinity, those of another rank may not be.
  stats[1] = most == -HUGE_VALF ? 0.0f : sum_of_exp(x, cols, most);
  stats[2] = label >= 0 && label < cols ? static_cast<float>(x[label]) : 0.0f;
}

// The ranks' statistics of one row, combined in rank order. Each holds `cols` logits.
RowStatistics combine(const KernelCall& call, int64_t row, int64_t label) {
  const View& stats = call.inputs[2];
  const int64_t rows = call.inputs[0].rows(), cols = call.inputs[0].cols();
  const int64_t ranks = stats.rows() / rows;
  const auto of = [&](int64_t rank) {
    return stats.as<const float>() + (rank * rows + row) * stats.row_stride;
  };
  RowStatistics known{of(0)[0], 0.0f, of(label / cols)[2],
                      label - call.attrs.integer("first_logit")};
  for (int64_t rank = 1; rank < ranks; ++rank) known.most = std::max(known.most, of(rank)[0]);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    known.sum += of(rank)[1] * std::exp(of(rank)[0] - known.most);
  }
  return known;
}

template <typename T, typename G>
void finish_as(const KernelCall& call, int64_t row) {
  const int64_t cols = call.inputs[0].cols();
  G* dx = call.outputs[1].as<G>() + row * call.outputs[1].row_stride;
  float& loss = call.outputs[0].as<float>()[row];
  const int64_t label = call.inputs[1].as<const int32_t>()[row];
  const int64_t vocabulary = call.inputs[2].rows() / call.inputs[0].rows() * cols;
  if (label < 0 || label >= vocabulary) {
    loss = 0.0f;
    std::memset(static_cast<void*>(dx), 0, cols * sizeof(G));
    return;
  }
  const RowStatistics known = combine(call, row, label);
  loss = known.loss();
  write_gradient(known, logits_of<T>(call, row), columns_that_count(call), cols, dx);
}

// Calls body(T(), G()) with the dtypes of the logits and of their gradient.
template <typename Body>
void with_dtypes(const KernelCall& call, const Body& body) {
  const bool narrow = call.inputs[0].dtype == DType::kBF16;
  if (call.outputs[1].dtype == DType::kBF16) {
    narrow ? body(bfloat16(), bfloat16()) : body(float(), bfloat16());
  } else {
    narrow ? body(bfloat16(), float()) : body(float(), float());
  }
}

void run_row(const KernelCall& call, int64_t row) {
  with_dtypes(call, [&](auto x, auto dx) { row_as<decltype(x), decltype(dx)>(call, row); });
}
void run_stats_row(const KernelCall& call, int64_t row) {
  const bool narrow = call.inputs[0].dtype == DType::kBF16;
  narrow ? stats_as<bfloat16>(call, row) : stats_as<float>(call, row);
}
void run_finish_row(const KernelCall& call, int64_t row) {
  with_dtypes(call, [&](auto x, auto dx) { finish_as<decltype(x), decltype(dx)>(call, row); });
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {
namespace {

HWY_EXPORT(run_row);
HWY_EXPORT(run_stats_row);
HWY_EXPORT(run_finish_row);

template <typename RunRow>
void for_rows(const KernelCall& call, const RunRow& run_row) {
  const int64_t rows = call.inputs[0].rows();
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) run_row(row);
}

void run(const KernelCall& call) {
  for_rows(call, [&](int64_t row) { HWY_DYNAMIC_DISPATCH(run_row)(call, row); });
}
void run_stats(const KernelCall& call) {
  for_rows(call, [&](int64_t row) { HWY_DYNAMIC_DISPATCH(run_stats_row)(call, row); });
}
void run_finish(const KernelCall& call) {
  for_rows(call, [&](int64_t row) { HWY_DYNAMIC_DISPATCH(run_finish_row)(call, row); });
}

}  // namespace

void add_softmax_cross_entropy_cpu_kernels(KernelTable& table) {
  table["softmax_cross_entropy"] = {.run = run};
  table["softmax_stats"] = {.run = run_stats};
  table["softmax_finish"] = {.run = run_finish};
}

}  // namespace skein
#endif  // HWY_ONCE
