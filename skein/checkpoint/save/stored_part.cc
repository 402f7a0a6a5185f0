#include "skein/checkpoint/save/stored_part.h"

#include "skein/base/error.h"

namespace skein {

StoredPart stored_part(const TensorType& type, const Mesh& mesh, int64_t rank) {
  const std::vector<int64_t> coordinates = mesh.coordinates(rank);
  const int pp = mesh.find("pp");
  TensorType shared = type;  // with the placements under which it is stored
  const bool split = !type.is_flat();
  for (const int axis : mesh.axes_of_copies()) {
    if (split && type.placements.at(axis).is_replicated()) {
      shared.placements[axis] = Placement::flat();
    }
  }

  StoredPart part{type.local_box(mesh, rank), shared.local_range(mesh, rank)};
  if (split) part.local_begin = part.range.begin;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (type.placements.at(axis).is_partial()) {
      fail(ErrorCode::kInvalid,
           "{} cannot be stored: it is a sum that is still pending over axis {}",
           type.to_string(mesh), mesh.axis(axis).name);
    }
    if (axis == pp || !shared.placements[axis].is_replicated()) continue;
    if (coordinates[axis] != 0) part.range.count = 0;
  }
  return part;
}

}  // namespace skein
