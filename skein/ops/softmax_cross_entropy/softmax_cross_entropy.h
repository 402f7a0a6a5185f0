// The loss of each token and its gradient with respect to the logits, in one pass over them.
//
// Formula       loss[c] = log(sum over v of e^logits[c, v]) - logits[c, labels[c]]
//               dlogits[c, v] = e^logits[c, v] / (that sum) - (v == labels[c])
//               both 0 if labels[c] is outside [0, V), such as -100: no label
// Derivative    of the sum of the losses: dlogits itself. Any other use of the loss is refused
// Shapes        logits [C, V] f32 or bf16; labels [C] i32; loss [C] f32;
//               dlogits [C, V] of gradient_dtype, over the logits where that is their dtype
// Attrs         gradient_dtype; vocabulary, where the last columns only pad V, so that ranks can
//               split it: these count for nothing, and their dlogits are 0
// Accumulation  fp32, the row's largest logit subtracted first
// Backward      saves dlogits
// Cost          about 30 flops a logit
// Placement     S0 S0 -> S0 S0. With logits S1, a vocabulary split over some axes, three ops:
//                 softmax_stats   what each rank knows of a row: its largest logit, the sum of
//                                 e^(logit - that), the label's logit, or 0 if another rank has it;
//                                 stats f32 [C n, 3], S0 over the axes of n ranks that split V
//                 redistribute    of stats to Replicated, over one such axis after the other
//                 softmax_finish  loss [C] Replicated over them and dlogits S1; the ranks' terms
//                                 are combined in rank order
//               An axis that splits rows must be outside those that split V
#pragma once

#include "skein/ir/graph.h"
#include "skein/ir/kernel.h"

namespace skein {

extern const OpDef kSoftmaxCrossEntropy;  // (logits, labels) {gradient_dtype} -> (loss, dlogits)
extern const OpDef kSoftmaxStats;         // (logits, labels) -> stats
extern const OpDef kSoftmaxFinish;  // (logits, labels, stats) {gradient_dtype} -> (loss, dlogits)

struct SoftmaxCrossEntropy {
  ValueId loss, dlogits;
};
// Appends one op, or three if the logits are S1. `vocabulary`: the attr; 0: all columns count.
SoftmaxCrossEntropy softmax_cross_entropy(Graph& graph, ValueId logits, ValueId labels,
                                          DType gradient_dtype, const std::string& name,
                                          int64_t vocabulary = 0);

// Of a kernel's call: how many of this rank's columns count.
int64_t columns_that_count(const KernelCall& call);

}  // namespace skein
