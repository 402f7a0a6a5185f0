#include "skein/ir/shared_rows.h"

namespace skein {

int64_t SharedRows::num_rows(ValueId id) {
  int64_t& rows = rows_.at(id);
  if (rows != kUnknown) return rows;
  const Shape local = graph_.type(id).local_shape(graph_.mesh());
  return rows = local.rank() == 0 ? 1 : local.dim(0);
}

void SharedRows::put(ValueId id, RowPlace at) {
  place_.at(id) = at;
  blocks_[at.block].values.push_back(id);
}

SharedRows::RowPlace SharedRows::resolve(ValueId id) {
  if (place_.at(id).block < 0) {
    blocks_.emplace_back();
    put(id, {static_cast<int>(blocks_.size()) - 1, 0});
  }
  RowPlace place = place_[id];
  while (blocks_[place.block].parent.block >= 0) {
    const RowPlace& parent = blocks_[place.block].parent;
    place = {parent.block, place.row + parent.row};
  }
  return place;
}

// A concatenation puts the blocks of `parts` below each other in one new block.
void SharedRows::join(const std::vector<ValueId>& parts) {
  const int joined = static_cast<int>(blocks_.size());
  blocks_.emplace_back();
  int64_t row = 0;
  for (const ValueId id : parts) {
    const RowPlace at = resolve(id);
    if (at.block != joined) {
      Block& block = blocks_[at.block];
      block.parent = {joined, row - at.row};
      std::vector<ValueId>& values = blocks_[joined].values;
      values.insert(values.end(), block.values.begin(), block.values.end());
    }
    row += num_rows(id);
  }
}

void SharedRows::add(const Node& node, const Layout& layout) {
  for (const Bundle& bundle : layout.bundles) {
    if (bundle.outputs || !bundle.required || bundle.dim != 0) continue;
    std::vector<ValueId> parts;
    for (const int operand : bundle.operands) {
      if (node.inputs.at(operand) != kNoValue) parts.push_back(node.inputs[operand]);
    }
    if (parts.size() > 1) join(parts);
  }
  for (const Alias& alias : layout.aliases) {
    const ValueId input = node.inputs.at(alias.input);
    if (input == kNoValue) continue;
    RowPlace at = resolve(input);
    at.row += alias.row_offset;
    put(node.outputs.at(alias.output), at);
  }
  for (const ValueId id : node.outputs) resolve(id);
}

bool SharedRows::share(ValueId a, ValueId b) {
  const RowPlace x = resolve(a), y = resolve(b);
  return x.block == y.block && x.row < y.row + num_rows(b) && y.row < x.row + num_rows(a);
}

std::vector<ValueId> SharedRows::sharing(ValueId id) {
  std::vector<ValueId> result;
  const std::vector<ValueId>& block = blocks_[resolve(id).block].values;
  for (const ValueId other : block) {
    if (share(id, other)) result.push_back(other);
  }
  return result;
}

}  // namespace skein
