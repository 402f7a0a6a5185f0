#include "skein/tensor/tensor_type.h"

#include <algorithm>
#include <charconv>

#include "skein/base/text/units.h"

namespace skein {

std::string Placement::to_string() const {
  if (is_replicated()) return "R";
  if (is_partial()) return "P";
  if (is_flat()) return "F";
  return fmt::format("S{}", code_);
}

Placement Placement::parse(std::string_view text) {
  if (text == "R") return replicated();
  if (text == "P") return partial();
  if (text == "F") return flat();
  int dim = -1;
  if (text.size() > 1 && text[0] == 'S') {
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), dim);
    if (error == std::errc() && end == text.data() + text.size() && dim >= 0) return sharded(dim);
  }
  fail(ErrorCode::kInvalid, "placement '{}': expected R, P, F or S<dim>", text);
}

TensorType TensorType::replicated(DType dtype, Shape shape, const Mesh& mesh) {
  return {dtype, std::move(shape), Placements(mesh.num_axes(), Placement::replicated())};
}

namespace {

Shape box_shape(const TensorType& type, const Mesh& mesh) {
  const Shape& shape = type.shape;
  const Placements& placements = type.placements;
  Shape local = shape;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (!placements.at(axis).is_sharded()) continue;
    const int dim = placements[axis].dim();
    const MeshAxis& on = mesh.axis(axis);
    if (dim >= shape.rank() || local.dim(dim) % on.size != 0) {
      fail(ErrorCode::kInvalid, "{}: dim {} cannot be split {} ways over axis {}",
           shape.to_string(), dim, on.size, on.name);
    }
    local.set_dim(dim, local.dim(dim) / on.size);
  }
  return local;
}

int64_t flat_share(int64_t elements, int64_t num_ranks) {
  return ceil_div(ceil_div(elements, kFlatGranule), num_ranks) * kFlatGranule;
}

}  // namespace

bool TensorType::is_flat() const {
  return std::find(placements.begin(), placements.end(), Placement::flat()) != placements.end();
}

Shape TensorType::local_shape(const Mesh& mesh) const {
  const Shape box = box_shape(*this, mesh);
  if (!is_flat()) return box;
  int64_t share = box.num_elements();
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (placements[axis].is_flat()) share = flat_share(share, mesh.axis(axis).size);
  }
  return Shape{share};
}

bool TensorType::splits_evenly(const Mesh& mesh) const {
  Shape local = shape;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (!placements.at(axis).is_sharded()) continue;
    const int dim = placements[axis].dim();
    if (dim >= local.rank() || local.dim(dim) % mesh.axis(axis).size != 0) return false;
    local.set_dim(dim, local.dim(dim) / mesh.axis(axis).size);
  }
  return true;
}

Box TensorType::local_box(const Mesh& mesh, int64_t rank) const {
  Box box{std::vector<int64_t>(shape.rank(), 0), shape};
  const std::vector<int64_t> coordinates = mesh.coordinates(rank);
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (!placements.at(axis).is_sharded()) continue;
    const int dim = placements[axis].dim();
    const int64_t size = box.shape.dim(dim) / mesh.axis(axis).size;
    box.shape.set_dim(dim, size);
    box.offset[dim] += coordinates[axis] * size;
  }
  return box;
}

FlatRange TensorType::local_range(const Mesh& mesh, int64_t rank) const {
  FlatRange range{0, box_shape(*this, mesh).num_elements()};
  int64_t share = range.count;
  const std::vector<int64_t> coordinates = mesh.coordinates(rank);
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (!placements[axis].is_flat()) continue;
    share = flat_share(share, mesh.axis(axis).size);
    const int64_t skipped = std::min(range.count, coordinates[axis] * share);
    range = {range.begin + skipped, std::min(share, range.count - skipped)};
  }
  return range;
}

int64_t TensorType::local_bytes(const Mesh& mesh) const {
  return local_shape(mesh).num_elements() * size_of(dtype);
}

std::string TensorType::to_string(const Mesh& mesh) const {
  std::string text = fmt::format("{}{}", dtype_name(dtype), shape.to_string());
  std::string placed;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (placements.at(axis).is_replicated()) continue;
    if (!placed.empty()) placed += ' ';
    placed += fmt::format("{}:{}", mesh.axis(axis).name, placements[axis].to_string());
  }
  return placed.empty() ? text : text + "{" + placed + "}";
}

bool Box::inside(const Shape& global) const {
  if (shape.rank() != global.rank() || offset.size() != shape.dims().size()) return false;
  for (int dim = 0; dim < global.rank(); ++dim) {
    const int64_t start = offset[dim], size = shape.dim(dim);
    if (start < 0 || size < 1 || start > global.dim(dim) || size > global.dim(dim) - start) {
      return false;
    }
  }
  return true;
}

std::string Box::to_string() const {
  if (offset.size() != shape.dims().size()) {
    return fmt::format("{} at {}", shape.to_string(), Shape(offset).to_string());
  }
  std::string text = "[";
  for (size_t dim = 0; dim < offset.size(); ++dim) {
    int64_t end = 0;
    if (__builtin_add_overflow(offset[dim], shape.dims()[dim], &end)) end = INT64_MAX;
    text += fmt::format("{}{}:{}", dim == 0 ? "" : ", ", offset[dim], end);
  }
  return text + "]";
}

}  // namespace skein
