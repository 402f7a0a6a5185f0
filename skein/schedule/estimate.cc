#include "skein/schedule/estimate.h"

#include <algorithm>

namespace skein {

HardwareRates rates_of(const Hardware& hardware, DType dtype) {
  const double flops_per_s = hardware.matmul(dtype).flops_per_s;
  return {.flops_per_s = flops_per_s,
          .fp8_flops_per_s = hardware.fp8_flops_per_s > 0 ? hardware.fp8_flops_per_s : flops_per_s,
          .bytes_per_s = hardware.memory_bytes_per_s,
          .launch_s = hardware.launch_s,
          .op_factors = hardware.op_factors};
}

double estimate_seconds(const Instruction& instruction, const HardwareRates& rates) {
  const auto bytes =
      static_cast<double>(instruction.cost.bytes_read + instruction.cost.bytes_written);
  if (instruction.cost.flops == 0 && bytes == 0) return 0;  // a view
  const bool is_fp8 = instruction.attrs.has("fp8") && instruction.attrs.flag("fp8");
  const double flops_per_s = is_fp8 ? rates.fp8_flops_per_s : rates.flops_per_s;
  const auto factor = rates.op_factors.find(instruction.op->name);
  return rates.launch_s +
         (factor == rates.op_factors.end() ? 1.0 : factor->second) *
             std::max(instruction.cost.flops / flops_per_s, bytes / rates.bytes_per_s);
}

double estimate_seconds(const Program& program, const HardwareRates& rates) {
  double seconds = 0;
  for (const Instruction& instruction : program.instructions)
    seconds += estimate_seconds(instruction, rates);
  return seconds;
}

double estimate_seconds(const Program& program, const Hardware& hardware, DType dtype) {
  return estimate_seconds(program, rates_of(hardware, dtype));
}

}  // namespace skein
