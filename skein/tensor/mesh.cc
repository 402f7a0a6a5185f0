#include "skein/tensor/mesh.h"

#include <fmt/format.h>

#include "skein/base/error.h"

namespace skein {

Mesh Mesh::standard(int64_t pp, int64_t dp, int64_t cp, int64_t tp) {
  return Mesh({{"pp", pp}, {"dp", dp}, {"cp", cp}, {"tp", tp}});
}

int Mesh::find(std::string_view name) const {
  for (int i = 0; i < num_axes(); ++i) {
    if (axes_[i].name == name) return i;
  }
  return -1;
}

int64_t Mesh::size(std::string_view name) const {
  const int index = find(name);
  return index < 0 ? 1 : axes_[index].size;
}

int64_t Mesh::num_ranks() const {
  int64_t product = 1;
  for (const MeshAxis& axis : axes_) product *= axis.size;
  return product;
}

std::vector<int> Mesh::axes_of_copies() const {
  std::vector<int> axes;
  for (int i = 0; i < num_axes(); ++i) {
    const auto& [name, size] = axes_[i];
    if ((name == "dp" || name == "cp") && size > 1) axes.push_back(i);
  }
  return axes;
}

std::vector<int64_t> Mesh::coordinates(int64_t rank) const {
  if (rank < 0 || rank >= num_ranks()) {
    fail(ErrorCode::kInternal, "rank {} is outside {}", rank, to_string());
  }
  std::vector<int64_t> result(axes_.size());
  for (int i = num_axes() - 1; i >= 0; --i) {
    result[i] = rank % axes_[i].size;
    rank /= axes_[i].size;
  }
  return result;
}

std::vector<int64_t> Mesh::ranks_along(std::string_view axis, int64_t rank) const {
  const int index = find(axis);
  if (index < 0) return {rank};
  int64_t stride = 1;
  for (int i = index + 1; i < num_axes(); ++i) stride *= axes_[i].size;
  std::vector<int64_t> ranks;
  const int64_t first = rank - coordinates(rank)[index] * stride;
  for (int64_t i = 0; i < axes_[index].size; ++i) ranks.push_back(first + i * stride);
  return ranks;
}

std::string Mesh::to_string() const {
  std::string text = "mesh(";
  for (const MeshAxis& axis : axes_) {
    if (text.back() != '(') text += ", ";
    text += fmt::format("{}={}", axis.name, axis.size);
  }
  return text + ")";
}

}  // namespace skein
