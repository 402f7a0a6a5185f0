// What a value is before it has memory: dtype, global shape, and one placement per mesh axis.
//
//   Replicated     every rank of the axis holds all of it
//   Sharded(dim)   each rank holds one contiguous slice of `dim`, equal in size, in rank order
//   Partial        every rank holds a term of a sum that is still owed
//
// The local shape follows from the mesh. Two types are the same value on the same mesh exactly when
// they compare equal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skein/tensor/dtype.h"
#include "skein/tensor/mesh.h"
#include "skein/tensor/shape.h"

namespace skein {

class Placement {
 public:
  static Placement replicated() { return Placement(-1); }
  static Placement partial() { return Placement(-2); }
  static Placement sharded(int dim) { return Placement(dim); }

  bool is_replicated() const { return code_ == -1; }
  bool is_partial() const { return code_ == -2; }
  bool is_sharded() const { return code_ >= 0; }
  int dim() const { return code_; }  // of a sharded one

  std::string to_string() const;                  // "R", "P", "S0"
  static Placement parse(std::string_view text);  // throws Error{kInvalid}
  bool operator==(const Placement&) const = default;

 private:
  explicit Placement(int code) : code_(code) {}
  int code_;
};

using Placements = std::vector<Placement>;

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;            // global
  Placements placements;  // one per mesh axis

  // All axes Replicated.
  static TensorType replicated(DType dtype, Shape shape, const Mesh& mesh);

  // Throws Error{kInvalid} where an axis does not divide the dim that it shards.
  Shape local_shape(const Mesh& mesh) const;
  int64_t local_bytes(const Mesh& mesh) const;

  // "bf16[1024, 512]{dp:S0 tp:P}"; Replicated axes are left out, and the braces with them.
  std::string to_string(const Mesh& mesh) const;
  bool operator==(const TensorType&) const = default;
};

}  // namespace skein
