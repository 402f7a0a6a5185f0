#include "skein/ops/linear/linear_rules.h"

#include <numeric>

#include "skein/ops/linear/fp8_operands.h"

namespace skein::linear_rules {

namespace {

void check_kept(const OpCall& call, int weights, int parts, int kept) {
  int64_t elements = 0;
  for (int i = weights; i < weights + parts; ++i) {
    elements += call.input(i).local_shape(call.mesh).num_elements();
  }
  check_type(call, kept, DType::kBF16, Shape{elements});
}

}  // namespace

int num_parts(const OpCall& call, const InputCounts& counts) {
  const int64_t parts = call.attrs.integer("parts");
  call.check(parts >= 1 && parts <= kMaxLinearParts, "parts = {}: expected 1 to {}", parts,
             kMaxLinearParts);
  const int num_magnitudes = is_fp8(call.attrs) ? counts.fp8_magnitudes : 0;
  const bool keeps =
      is_fp8(call.attrs) && counts.first_weight >= 0 && has_kept_weights(call.attrs, call.op);
  const int64_t first_magnitude = counts.lists * parts + counts.singles;
  const int64_t expected = first_magnitude + num_magnitudes + (keeps ? 1 : 0);
  call.check(call.num_inputs() == expected, "{} inputs: {} parts have {}", call.num_inputs(), parts,
             expected);
  for (int64_t i = first_magnitude; i < first_magnitude + num_magnitudes; ++i) {
    check_type(call, static_cast<int>(i), DType::kF32, Shape{1});
  }
  if (keeps) {
    check_kept(call, counts.first_weight, static_cast<int>(parts), static_cast<int>(expected) - 1);
  }
  return static_cast<int>(parts);
}

int64_t bytes_read(const OpCall& call) {
  const bool keeps = has_kept_weights(call.attrs, call.op);
  const int last = call.num_inputs() - 1;
  return input_bytes(call) - (keeps ? call.input(last).local_bytes(call.mesh) : 0);
}

Placements match(const OpCall& call, int a, int b, std::initializer_list<PlacementRule> rules) {
  Placements result;
  for (int axis = 0; axis < call.mesh.num_axes(); ++axis) {
    const Placement of_a = call.input(a).placements.at(axis);
    const Placement of_b = call.input(b).placements.at(axis);
    const size_t before = result.size();
    for (const PlacementRule& rule : rules) {
      if (Placement::parse(rule.a) == of_a && Placement::parse(rule.b) == of_b) {
        result.push_back(Placement::parse(rule.result));
        break;
      }
    }
    call.check(result.size() > before, "no placement rule for {} and {} on axis {}",
               call.describe(a), call.describe(b), call.mesh.axis(axis).name);
  }
  return result;
}

std::vector<int> range(int begin, int count) {
  std::vector<int> indices(count);
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

}  // namespace skein::linear_rules
