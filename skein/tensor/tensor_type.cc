#include "skein/tensor/tensor_type.h"

#include <charconv>

namespace skein {

std::string Placement::to_string() const {
  if (is_replicated()) return "R";
  if (is_partial()) return "P";
  return fmt::format("S{}", code_);
}

Placement Placement::parse(std::string_view text) {
  if (text == "R") return replicated();
  if (text == "P") return partial();
  int dim = -1;
  if (text.size() > 1 && text[0] == 'S') {
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), dim);
    if (error == std::errc() && end == text.data() + text.size() && dim >= 0) return sharded(dim);
  }
  fail(ErrorCode::kInvalid, "placement '{}': expected R, P or S<dim>", text);
}

TensorType TensorType::replicated(DType dtype, Shape shape, const Mesh& mesh) {
  return {dtype, std::move(shape), Placements(mesh.num_axes(), Placement::replicated())};
}

Shape TensorType::local_shape(const Mesh& mesh) const {
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

}  // namespace skein
