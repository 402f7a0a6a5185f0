// What a value is before it has memory: dtype, global shape, and one placement per mesh axis.
//
//   Replicated     every rank of the axis holds all of it
//   Sharded(dim)   each rank holds one contiguous slice of `dim`, equal in size, in rank order
//   Flat           what the sharding axes leave to a rank is laid out flat, row by row, and each
//                  rank of this axis holds one range of it: a vector of whole granules, equal in
//                  length, in rank order, padded behind the end (ZeRO)
//   Partial        every rank holds a term of a sum that is still pending
//
// Where two axes shard one dim, or are Flat, the outer axis (first in the mesh) cuts first. The
// local shape follows from the mesh. Two types are the same value on the same mesh exactly when
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
  static Placement flat() { return Placement(-3); }
  static Placement sharded(int dim) { return Placement(dim); }

  bool is_replicated() const { return code_ == -1; }
  bool is_partial() const { return code_ == -2; }
  bool is_flat() const { return code_ == -3; }
  bool is_sharded() const { return code_ >= 0; }
  int dim() const { return code_; }  // of a sharded one

  std::string to_string() const;                  // "R", "P", "F", "S0"
  static Placement parse(std::string_view text);  // throws Error{kInvalid}
  bool operator==(const Placement&) const = default;

 private:
  explicit Placement(int code) : code_(code) {}
  int code_;
};

using Placements = std::vector<Placement>;

// Flat ranges are made of whole granules of this many elements.
inline constexpr int64_t kFlatGranule = 1024;

// A rectangle of a tensor.
struct Box {
  std::vector<int64_t> offset;
  Shape shape;

  static Box whole(const Shape& shape) {
    return {std::vector<int64_t>(static_cast<size_t>(shape.rank()), 0), shape};
  }
  // True if the box lies inside a tensor of shape `global` and every size is at least 1.
  bool inside(const Shape& global) const;
  std::string to_string() const;  // "[0:512, 128:256]"
  bool operator==(const Box&) const = default;
};

// A range of the elements of a box, row by row.
struct FlatRange {
  int64_t begin = 0;
  int64_t count = 0;  // without the padding at the end
  bool operator==(const FlatRange&) const = default;
};

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;            // global
  Placements placements;  // one per mesh axis

  // All axes Replicated.
  static TensorType replicated(DType dtype, Shape shape, const Mesh& mesh);

  // Throws Error{kInvalid} where an axis does not divide the dim that it shards.
  Shape local_shape(const Mesh& mesh) const;
  int64_t local_bytes(const Mesh& mesh) const;
  bool splits_evenly(const Mesh& mesh) const;  // else local_shape throws

  // The box that the sharding axes leave to `rank`, before Flat axes take their ranges of it.
  Box local_box(const Mesh& mesh, int64_t rank) const;
  // The elements of local_box() that `rank` holds: all of them where no axis is Flat.
  FlatRange local_range(const Mesh& mesh, int64_t rank) const;
  bool is_flat() const;  // over an axis at least

  // "bf16[1024, 512]{dp:S0 tp:P}"; Replicated axes are left out, and the braces with them.
  std::string to_string(const Mesh& mesh) const;
  bool operator==(const TensorType&) const = default;
};

}  // namespace skein
