// The loss of each token and its gradient by the logits, in one pass over them.
//
// Formula       loss[c] = log(sum over v of e^logits[c, v]) - logits[c, labels[c]]
//               dlogits[c, v] = e^logits[c, v] / (that sum) - (v == labels[c])
//               both 0 where labels[c] is outside of [0, V), such as -100: no label
// Derivative    of the sum of the losses: dlogits itself. Any other use of the loss is refused
// Shapes        logits [C, V] f32 or bf16; labels [C] i32; loss [C] f32;
//               dlogits [C, V] of gradient_dtype, over the logits where that is their dtype
// Accumulation  fp32, the row's largest logit subtracted first
// Backward      saves dlogits
// Cost          about 30 flops a logit
// Placement     S0 S0 -> S0 S0. A split vocabulary is composed of other ops
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kSoftmaxCrossEntropy;  // (logits, labels) {gradient_dtype} -> (loss, dlogits)

struct SoftmaxCrossEntropy {
  ValueId loss, dlogits;
};
SoftmaxCrossEntropy softmax_cross_entropy(Graph& graph, ValueId logits, ValueId labels,
                                          DType gradient_dtype, const std::string& name);

}  // namespace skein
