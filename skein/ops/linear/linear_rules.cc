#include "skein/ops/linear/linear_rules.h"

#include <numeric>

#include "skein/ops/linear/fp8_operands.h"

namespace skein::linear_rules {

int num_parts(const OpCall& call, int lists, int singles, int groups) {
  const int64_t parts = call.attrs.integer("parts");
  call.check(parts >= 1 && parts <= kMaxLinearParts, "parts = {}: expected 1 to {}", parts,
             kMaxLinearParts);
  if (!is_fp8(call.attrs)) groups = 0;
  const int64_t expected = lists * parts + singles + groups;
  call.check(call.num_inputs() == expected, "{} inputs: {} parts have {}", call.num_inputs(), parts,
             expected);
  for (int i = static_cast<int>(expected) - groups; i < expected; ++i) {
    check_type(call, i, DType::kF32, Shape{1});
  }
  return static_cast<int>(parts);
}

Placements match(const OpCall& call, int a, int b, std::initializer_list<Rule> rules) {
  Placements result;
  for (int axis = 0; axis < call.mesh.num_axes(); ++axis) {
    const Placement of_a = call.input(a).placements.at(axis);
    const Placement of_b = call.input(b).placements.at(axis);
    const size_t before = result.size();
    for (const Rule& rule : rules) {
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
