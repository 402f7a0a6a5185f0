// The update phase: gradient sums over ranks, global norm, clipping, and the update of every
// parameter by its optimizer.
//
// Inputs    learning_rate f32[1], step i32[1] (1 = the first update), num_label_tokens i32[1] of
//           the rank's part of the global batch, Partial over dp; the state of the optimizers
//           (ops/optimizer.h), and `master.<p>` in mixed precision; with several ranks
//           rank_reports f64[kNumReports + num_corpora - 1], Partial over every axis: what each
//           has to tell the others (kReport…)
// Outputs   grad_norm f32[1], before clipping; param_norm_squared f64[exact_sum::kBins], of the
//           updated weights; loss_sum, now of all ranks, and their label tokens:
//           global_label_tokens i32[1], where dp has more than one rank; all_reports, the sum of
//           the ranks' reports, which travel with the sums of losses and norms. The gradient sums
//           are left zero
// Formula   docs/notation.md; torch.optim.AdamW, Muon, and torch.nn.utils.clip_grad_norm_
// ZeRO      over dp and cp, where there is more than one rank (Rajbhandari et al.,
//           arXiv:1910.02054):
//             0  gradients all-reduced, optimizer state whole on every rank
//             1  gradients reduce-scattered to ranges (Flat), optimizer state of that range alone,
//                the updated ranges of the weights all-gathered. Over dp first, then ranges of the
//                range over cp; back the other way around, over dp beside the next bucket's cp
//             2, 3  as 1; passes/parallel/zero.h has changed the graph before
//           in buckets of bucket_bytes of fp32 gradient, or of one parameter that is larger: the
//           scratch of a sum is bounded by the largest. Updates take one bucket, or as many as
//           give every owner of matrices one (Optimizer::most_owners)
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "skein/ir/graph.h"
#include "skein/ops/adamw/adamw.h"
#include "skein/ops/optimizer.h"

namespace skein {

// How weights are stored and rounded.
enum class Precision {
  kF32,             // all in fp32
  kBF16,            // bf16 weights, rounded to nearest: loses small updates
  kBF16Stochastic,  // bf16 weights, stochastic rounding, no master copy
  kMixed,           // bf16 weights, fp32 master copy
};
Precision parse_precision(std::string_view mode);  // throws Error{kUsage}
DType compute_dtype(Precision precision);

// Of gradients that travel together, in a model of so many parameters: with fewer buckets too much
// of a small model's gradients is complete only when backward ends.
inline constexpr int64_t kMostBucketBytes = int64_t{32} << 20;
constexpr int64_t bucket_bytes(int64_t num_parameters) {
  constexpr int64_t kBucketsAStep = 16, kLeast = int64_t{1} << 20;
  return std::clamp(4 * num_parameters / kBucketsAStep, kLeast, kMostBucketBytes);
}

// What ranks tell each other in a step, added up over all of them.
enum RankReport {
  kReportStop = 0,
  kReportCopied = 1,      // 1: the newest copy of the state in memory is whole
  kReportCopyMicros = 2,  // what it cost
  kReportStepMicros = 3,  // of the last step that ended
  kReportProgress = 4,    // in the first corpus; those of other corpora follow
  kNumReports = 5         // with one corpus
};
inline constexpr int64_t kMaxCorpora = 64;  // that are read together

// How one parameter is updated.
struct ParameterRule {
  const Optimizer* optimizer = &adamw_optimizer();
  bool decays = true;
};

struct UpdateOptions {
  Precision precision = Precision::kF32;
  OptimizerSettings optimizer;  // but for what follows from `precision`
  double weight_decay = 0.1;
  double clip_norm = 1.0;                   // 0: no clipping
  int64_t bucket_bytes = kMostBucketBytes;  // of gradients that travel together, at most
  std::function<ParameterRule(std::string_view)> rule = [](std::string_view) {
    return ParameterRule();
  };
  int64_t zero = 1;
  int64_t num_corpora = 1;
  // Of a pipeline stage's graph: what parameters of it another stage has as well (tied embeddings),
  // and which stage that is. The lower of the two stages counts it in norms.
  int64_t stage = 0;
  std::map<std::string, int64_t> shared_with_stage;
};

// Appends the update of every parameter that has a gradient. Call after `differentiate`.
void append_update(Graph& graph, const UpdateOptions& options);

// For an evaluation graph: the update phase that adds up loss_sum and num_label_tokens over all
// ranks.
void append_loss_total(Graph& graph);

}  // namespace skein
