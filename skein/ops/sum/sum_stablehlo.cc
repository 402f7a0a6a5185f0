#include "skein/ops/exact_sum_stablehlo.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// sum' = sum + terms[0] + terms[1] + ..., exactly
std::vector<Tensor> add_terms(const RuleCall& call) {
  return {exact_sum::add(call.inputs[0], to_f64(call.inputs[1]))};
}

}  // namespace

void add_sum_stablehlo_rules(stablehlo::RuleTable& rules) { rules["add_to_sum"] = add_terms; }

}  // namespace skein
