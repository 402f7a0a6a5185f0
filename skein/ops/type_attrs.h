// Stores types in attrs, for ops that have no input to take a type from.
#pragma once

#include <sstream>
#include <string>

#include "skein/ir/op_def.h"

namespace skein {

inline Attrs type_attrs(const TensorType& type) {
  std::string placements;
  for (const Placement placement : type.placements) {
    placements += (placements.empty() ? "" : " ") + placement.to_string();
  }
  return {{"dtype", std::string(dtype_name(type.dtype))},
          {"shape", type.shape.dims()},
          {"placements", placements}};
}

inline TensorType type_of_attrs(const OpCall& call) {
  const std::optional<DType> dtype = parse_dtype(call.attrs.text("dtype"));
  call.check(dtype.has_value(), "dtype is '{}'", call.attrs.text("dtype"));
  TensorType type{*dtype, Shape(call.attrs.integers("shape")), {}};
  std::istringstream words(call.attrs.text("placements"));
  for (std::string word; words >> word;) type.placements.push_back(Placement::parse(word));
  call.check(static_cast<int>(type.placements.size()) == call.mesh.num_axes(),
             "placements '{}' do not fit {}", call.attrs.text("placements"), call.mesh.to_string());
  return type;
}

}  // namespace skein
