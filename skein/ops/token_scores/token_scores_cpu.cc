#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/token_scores/token_scores_cpu.cc"
#include "hwy/foreach_target.h"
#include "skein/ir/kernel.h"
#include "skein/ops/simd/softmax_row-inl.h"
#include "skein/ops/token_scores/token_scores.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;
using sm::VF32;

// The first that is equal to `most`; 0 if none is (NaN).
int32_t first_equal(const float* x, size_t cols, float most) {
  const sm::F32 d;
  const size_t step = hn::Lanes(d);
  const VF32 wanted = hn::Set(d, most);
  size_t i = 0;
  while (i + step <= cols && hn::AllFalse(d, hn::Eq(hn::LoadU(d, x + i), wanted))) i += step;
  while (i < cols && x[i] != most) ++i;
  return i < cols ? static_cast<int32_t>(i) : 0;
}

void run_rows(const KernelCall& call) {
  const View& logits = call.inputs[0];
  auto* logprob = call.outputs[0].as<float>();
  auto* best = call.outputs[1].as<int32_t>();
  auto* best_logprob = call.outputs[2].as<float>();
  const auto* labels = call.inputs[1].as<const int32_t>();
  const auto cols = static_cast<size_t>(logits.cols());
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < logits.rows(); ++row) {
    const float* x = logits.as<const float>() + row * logits.row_stride;
    const float most = sm::largest(x, cols);
    best[row] = first_equal(x, cols, most);
    best_logprob[row] = -std::log(sm::sum_of_exp(x, cols, most));
    const int64_t label = labels[row];
    const bool has_label = label >= 0 && label < static_cast<int64_t>(cols);
    logprob[row] = has_label ? x[label] - most + best_logprob[row] : 0.0f;
  }
}

}  // namespace
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {
namespace {

HWY_EXPORT(run_rows);
void run(const KernelCall& call) { HWY_DYNAMIC_DISPATCH(run_rows)(call); }

}  // namespace

void add_token_scores_cpu_kernels(KernelTable& table) { table["token_scores"] = {.run = run}; }

}  // namespace skein
#endif
