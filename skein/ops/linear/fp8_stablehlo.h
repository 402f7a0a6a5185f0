// The `fp8` mode of linear and its derivatives in StableHLO, as on a CPU (fp8_cpu.h): operands are
// rounded as 8-bit products would see them, and multiplied in bf16, which holds them exactly.
//
// Why no f8 types  Compilers for Trainium 1 and 2 take no f8E4M3FN; convert does not saturate; and
//                  XLA may leave out a conversion to 8 bits and back
//                  (xla_allow_excess_precision), which would round nothing
#pragma once

#include <string_view>
#include <vector>

#include "skein/stablehlo/rule.h"

namespace skein {

// The call's inputs, with rounded values in place of those that its groups name (fp8_operands.h).
// Kept weights stand in place of the op's own.
std::vector<stablehlo::Tensor> fp8_operands(const stablehlo::RuleCall& call, std::string_view op);

std::vector<stablehlo::Tensor> fp8_largest_rule(const stablehlo::RuleCall& call);
std::vector<stablehlo::Tensor> round_weights_rule(const stablehlo::RuleCall& call);

}  // namespace skein
