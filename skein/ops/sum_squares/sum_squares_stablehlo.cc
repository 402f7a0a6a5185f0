#include <algorithm>
#include <limits>

#include "skein/ops/exact_sum_stablehlo.h"
#include "skein/stablehlo/rule.h"
#include "skein/tensor/tensor_type.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// A segment is summed as a square: XLA's CPU backend makes one loop of a reduction whose dims are
// 32 at most, and windows in memory of a longer one.
constexpr int64_t kSide = 32;
static_assert(kSide * kSide == kFlatGranule);

Tensor squares(const Tensor& x) {
  const Tensor wide = to_f64(x);
  return wide * wide;
}

// The local elements of input `index` as a list, 0 where they are padding of a Flat part.
Tensor counted_elements(const RuleCall& call, size_t index) {
  const Tensor& x = call.inputs[index];
  const int64_t elements = x.type().num_elements();
  const Tensor list = reshape(x, {elements});
  const bool all_count = std::all_of(call.attrs.begin(), call.attrs.end(), [&](const Attrs* one) {
    return !one->has("counts") || one->integers("counts").at(index) == elements;
  });
  if (all_count) return list;
  const bool is_long = elements > std::numeric_limits<int32_t>::max();
  const Element integer = is_long ? Element::kI64 : Element::kI32;
  const Tensor counts = compare(call.to.iota(integer, {elements}, 0), Compare::kLess,
                                call.rank_integer_of("counts", index, integer));
  return select(counts, list, call.to.constant(x.element(), 0));
}

// Appends the sums of squares of the segments of a list of elements.
void append_sums(const Tensor& list, std::vector<Tensor>& sums) {
  const int64_t elements = list.dim(0), segments = elements / kFlatGranule;
  const int64_t rest = segments * kFlatGranule;
  if (segments > 0) {
    const Tensor whole = reshape(slice_dim(list, 0, 0, rest), {segments, kSide, kSide});
    sums.push_back(sum(squares(whole), {1, 2}));
  }
  if (rest < elements) {
    sums.push_back(reshape(sum(squares(slice_dim(list, 0, rest, elements)), {0}), {1}));
  }
}

std::vector<Tensor> sum_of_squares(const RuleCall& call) {
  std::vector<Tensor> sums;
  for (size_t i = 0; i < call.inputs.size(); ++i) append_sums(counted_elements(call, i), sums);
  const Tensor none = call.to.constant(Element::kF64, 0, {exact_sum::kBins});
  return {exact_sum::add(none, concatenate(sums, 0))};
}

}  // namespace

void add_sum_squares_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["sum_squares"] = sum_of_squares;
}

}  // namespace skein
