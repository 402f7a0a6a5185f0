#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// y[r] = x[index[r]]
std::vector<Tensor> forward(const RuleCall& call) {
  return {stablehlo::take_rows(call.inputs[0], call.inputs[1])};
}

}  // namespace

void add_take_rows_stablehlo_rules(stablehlo::RuleTable& rules) { rules["take_rows"] = forward; }

}  // namespace skein
