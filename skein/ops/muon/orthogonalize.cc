#include "skein/ops/muon/orthogonalize.h"

#include <algorithm>

#include "skein/ops/checks.h"
#include "skein/ops/muon/muon.h"

namespace skein {
namespace {

// The axes of {over}, by index.
std::vector<int> owner_axes(const OpCall& call) {
  std::vector<int> axes;
  std::string_view names = call.attrs.text("over");
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    const std::string name(names.substr(0, comma));
    const int axis = call.mesh.find(name);
    call.check(axis >= 0, "{} has no axis '{}'", call.mesh.to_string(), name);
    axes.push_back(axis);
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return axes;
}

int64_t num_owners(const OpCall& call) {
  int64_t owners = 1;
  for (const int axis : owner_axes(call)) owners *= call.mesh.axis(axis).size;
  return owners;
}

std::vector<TensorType> infer(const OpCall& call) {
  TensorType type = check_matrix(call, 0);
  for (const Placement& placement : type.placements) {
    call.check(placement.is_replicated(), "{} must be whole on every rank", call.describe(0));
  }
  for (const int axis : owner_axes(call)) {
    if (call.mesh.axis(axis).size > 1) type.placements[axis] = Placement::partial();
  }
  const int64_t owner = call.attrs.integer("owner");
  call.check(owner >= 0 && owner < num_owners(call), "owner is {}: expected one of {} ranks", owner,
             num_owners(call));
  return {type};
}

// The mean of the owners of a group: the other ranks wait for what they find.
Cost cost(const OpCall& call) {
  const auto owners = static_cast<double>(std::min(num_owners(call), kMostMuonOwners));
  return {orthogonalize_flops(call.input(0).shape) / owners,
          static_cast<int64_t>(static_cast<double>(input_bytes(call)) / owners),
          output_bytes(call)};
}

void localize(const OpCall& call, int64_t rank, Attrs& attrs) {
  int64_t index = 0;
  for (const int axis : owner_axes(call)) {
    index = index * call.mesh.axis(axis).size + call.mesh.coordinates(rank)[axis];
  }
  attrs.set("is_owner", index == call.attrs.integer("owner"));
}

}  // namespace

double orthogonalize_flops(const Shape& matrix) {
  const OrthogonalizeSizes sizes(matrix);
  const auto small = static_cast<double>(sizes.small), large = static_cast<double>(sizes.large);
  return NewtonSchulz::kSteps * 2 * small * small * (2 * large + small);
}

const OpDef kOrthogonalize = {
    .name = "orthogonalize", .infer = infer, .cost = cost, .localize = localize};

}  // namespace skein
