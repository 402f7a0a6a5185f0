// The AdamW update of one parameter, in place.
//
// Formula       g = gradient * scale
//               w = w - learning_rate weight_decay w
//               m = m + (1 - beta1) (g - m)
//               v = beta2 v + (1 - beta2) g^2
//               w = w - learning_rate / (1 - beta1^step) * m / (sqrt(v) / sqrt(1 - beta2^step) +
//               epsilon)
//               gradient = 0, for the next step to accumulate from; with {keeps_gradient} it stays,
//               for a next step that overwrites it
// Shapes        weight w f32 or bf16, any shape; gradient f32; exp_avg m and exp_avg_sq v f32 or
//               bf16; master f32, with a bf16 weight; all of one shape, packed.
//               scale, learning_rate f32[1]; step i32[1], 1 at the first update
// Computed      fp32; the bias corrections in f64
// Rounding      of a bf16 weight: with a master, the master is updated and the weight is the bf16
//               nearest to it; without, to nearest, or stochastically with `stochastic_rounding`.
//               of bf16 moments: always stochastically, because rounding to nearest would freeze v,
//               whose changes of 1 - beta2 are below half a bf16 step
//               The noise of element e of the whole parameter, row-major, is 16 bits of the
//               Philox word e of (seed, purpose, stream, step): the low ones of kStochasticRounding
//               for w, the low ones of kMomentRounding for m, the high ones for v. So it does not
//               depend on how the parameter is split
// Backward      none
// Cost          about 15 flops an element, 60 more with noise; reads and writes all but the scalars
// Placement     over each axis the same for weight, gradient and state, R, S0, S1 or F: all in
//               place. Or weight R, gradient and state F (ZeRO 1 and 2): weight' is F, the rank's
//               range of the new weight, in separate memory; the others in place.
//               Padding stays zero
// Source        Loshchilov and Hutter, arXiv:1711.05101; torch.optim.AdamW
#pragma once

#include "skein/ops/optimizer.h"

namespace skein {

// (weight, gradient, exp_avg, exp_avg_sq, [master], scale, learning_rate, step)
//   -> (weight', gradient', exp_avg', exp_avg_sq', [master'])
extern const OpDef kAdamw;

struct AdamwInputs {
  ValueId weight = kNoValue;
  ValueId gradient = kNoValue;
  ValueId exp_avg = kNoValue;
  ValueId exp_avg_sq = kNoValue;
  ValueId master = kNoValue;  // kNoValue: none
  ValueId scale = kNoValue;
  ValueId learning_rate = kNoValue;
  ValueId step = kNoValue;
};

struct AdamwAttrs {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  bool stochastic_rounding = false;
  uint64_t seed = 0;
  uint32_t stream = 0;  // distinguishes parameters: a hash of the name
};

struct AdamwOutputs {
  ValueId weight, gradient, exp_avg, exp_avg_sq, master;
};

// State: exp_avg and exp_avg_sq.
const Optimizer& adamw_optimizer();

// The outputs are named after the inputs.
AdamwOutputs adamw(Graph& graph, const AdamwInputs& inputs, const AdamwAttrs& attrs,
                   const std::string& name);

}  // namespace skein
