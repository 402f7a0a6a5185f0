#include "skein/ops/local_elements.h"

namespace skein {

void set_local_elements(const OpCall& call, const TensorType& part, const TensorType& weight,
                        int64_t rank, Attrs& attrs) {
  const Box box = part.local_box(call.mesh, rank);
  const FlatRange range = part.local_range(call.mesh, rank);
  int64_t inner = 1;  // elements of one index of dim 1
  for (int dim = 2; dim < part.shape.rank(); ++dim) inner *= part.shape.dim(dim);
  const bool is_vector = part.shape.rank() < 2;
  const int64_t row = is_vector ? 1 : part.shape.dim(1) * inner;
  const int64_t box_row = is_vector ? 1 : box.shape.dim(1) * inner;
  attrs.set("range_begin", range.begin);
  attrs.set("range_count", range.count);
  attrs.set("weight_begin", range.begin - weight.local_range(call.mesh, rank).begin);
  attrs.set("first_element", box.offset[0] * row + (is_vector ? 0 : box.offset[1] * inner));
  attrs.set("run_elements", box_row == row ? box.shape.num_elements() : box_row);
  attrs.set("run_stride", row);
}

LocalElements LocalElements::of(const Attrs& attrs, int64_t num_elements) {
  const auto local = [&](std::string_view name, int64_t whole) {
    return attrs.has(name) ? attrs.integer(name) : whole;
  };
  LocalElements local_elements;
  local_elements.count = local("range_count", num_elements);
  local_elements.weight_begin = local("weight_begin", 0);
  local_elements.range_begin = static_cast<uint64_t>(local("range_begin", 0));
  local_elements.first_element = static_cast<uint64_t>(local("first_element", 0));
  local_elements.run_elements = static_cast<uint64_t>(local("run_elements", local_elements.count));
  local_elements.run_stride = static_cast<uint64_t>(local("run_stride", 0));
  return local_elements;
}

}  // namespace skein
