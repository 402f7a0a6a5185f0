// The `fp8` mode of linear and its derivatives on the CPU: operands are copied to scratch, rounded
// as 8-bit products would see them, and multiplied in bf16, which holds them exactly. Kept weights
// are multiplied where they lie.
#pragma once

#include <string_view>

#include "skein/ir/kernel.h"

namespace skein {

// The call with dense operands in scratch, followed by its own scratch. Addresses may be null.
KernelCall with_fp8_operands(const KernelCall& call, std::string_view op);
int64_t fp8_operand_bytes(const KernelCall& call, std::string_view op);

// Fills these operands from the inputs of `call`.
void round_fp8_operands(const KernelCall& call, std::string_view op);

void run_round_weights(const KernelCall& call);
void run_fp8_largest(const KernelCall& call);

}  // namespace skein
