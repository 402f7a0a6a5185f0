// Where this rank's part of the state goes: into which file of the checkpoint, to which bytes of
// it, and to which bytes of the snapshot. Fixed at start-up.
//
// Files are named <group>-<rank>-<index>.safetensors, e.g. weights-00000-00000.safetensors: a group
// ("weights", "optimizer", ...) has files of its own, so that the weights can be read alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skein/checkpoint/format/boxes.h"
#include "skein/checkpoint/format/safetensors_writer.h"
#include "skein/checkpoint/save/stored_part.h"

namespace skein {

struct TensorSpec {
  std::string name;  // unique in its group's files
  DType dtype = DType::kF32;
  Shape shape;  // global
  Box slice;    // what this rank holds, all of it or a range of it
  std::string group = "weights";
  // The range of the slice's elements, row by row, that this rank stores. Nothing: all of them. An
  // empty range: none, and the tensor is in no file of this rank.
  std::optional<FlatRange> range;
  int64_t local_begin = 0;  // element of the rank's memory at which the range begins

  static TensorSpec whole(std::string name, DType dtype, Shape shape,
                          std::string group = "weights") {
    Box slice = Box::whole(shape);
    return {std::move(name), dtype, std::move(shape), std::move(slice), std::move(group)};
  }
  static TensorSpec part(std::string name, const TensorType& type, const StoredPart& part,
                         std::string group = "weights") {
    return {std::move(name),  type.dtype, type.shape,      part.box,
            std::move(group), part.range, part.local_begin};
  }

  FlatRange stored_range() const {
    return range.value_or(FlatRange{0, slice.shape.num_elements()});
  }
  int64_t stored_bytes() const { return stored_range().count * size_of(dtype); }
  // The boxes that are stored, in the order of their bytes. In the file, a part that is one box is
  // a tensor of that box's shape; a part of several boxes is a tensor of one dim.
  std::vector<Box> stored_boxes() const { return boxes_of_range(slice, stored_range()); }
};

struct CheckpointFile {
  std::string name;
  std::vector<size_t> specs;  // in the order given to `layout`
  SafetensorsLayout layout;
};

struct CheckpointLayout {
  std::vector<TensorSpec> specs;
  std::vector<CheckpointFile> files;
  std::vector<int64_t> snapshot_begin;  // per spec
  std::vector<int64_t> spec_bytes;      // stored, per spec
  int64_t snapshot_bytes = 0;           // a multiple of the page size
};

// Throws Error{kInvalid} for a slice outside its tensor, a range outside its slice, a repeated
// name, or a group that cannot be part of a file name.
CheckpointLayout plan_checkpoint(std::vector<TensorSpec> specs, int64_t max_file_bytes, int rank);

}  // namespace skein
