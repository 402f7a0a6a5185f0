#include "skein/base/numbers/exact_sum.h"
#include "skein/ir/kernel.h"

namespace skein {
namespace {

void run(const KernelCall& call) {
  const View& terms = call.inputs[1];
  double* bins = call.outputs[0].as<double>();
  for (int64_t i = 0; i < terms.shape.num_elements(); ++i) {
    exact_sum::add(bins, terms.as<const float>()[i]);
  }
}

}  // namespace

void add_sum_cpu_kernels(KernelTable& table) { table["add_to_sum"] = {.run = run}; }

}  // namespace skein
