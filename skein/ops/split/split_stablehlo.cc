#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// The sizes are those of the local outputs: where an axis splits the rows, each rank has a part of
// every slice.
std::vector<Tensor> split_rows(const RuleCall& call) {
  std::vector<Tensor> slices;
  int64_t begin = 0;
  for (const Type& y : call.outputs) {
    const int64_t end = begin + y.dims[0];
    slices.push_back(slice_dim(call.inputs[0], 0, begin, end));
    begin = end;
  }
  return slices;
}

std::vector<Tensor> concat_rows(const RuleCall& call) { return {concatenate(call.inputs, 0)}; }

}  // namespace

void add_split_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["split"] = split_rows;
  rules["concat"] = concat_rows;
}

}  // namespace skein
