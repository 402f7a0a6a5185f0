#include <algorithm>
#include <cmath>

#include "skein/base/numbers/exact_sum.h"
#include "skein/ir/kernel.h"

namespace skein {
namespace {

void run(const KernelCall& call) {
  const double max_norm = call.attrs.real("max_norm");
  const double tokens = std::max(1, *call.inputs[1].as<const int32_t>());
  const double norm = std::sqrt(exact_sum::total(call.inputs[0].as<const double>())) / tokens;
  const double clip = max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
  *call.outputs[0].as<float>() = static_cast<float>(clip / tokens);
  *call.outputs[1].as<float>() = static_cast<float>(norm);
}

}  // namespace

void add_clip_scale_cpu_kernels(KernelTable& table) { table["clip_scale"] = {.run = run}; }

}  // namespace skein
