// Where this rank's part of the state goes: which file of the checkpoint, which bytes of it, and
// which bytes of the snapshot. Fixed at start-up.
//
// Files are named <group>-<rank>-<index>.safetensors, e.g. weights-00000-00000.safetensors: a group
// ("weights", "optimizer", …) has files of its own, so that the weights can be read alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/checkpoint/safetensors_writer.h"
#include "skein/checkpoint/slice.h"

namespace skein {

struct TensorSpec {
  std::string name;  // unique in its group's files
  DType dtype = DType::kF32;
  Shape shape;  // global
  Slice slice;  // what this rank holds and writes
  std::string group = "weights";

  static TensorSpec whole(std::string name, DType dtype, Shape shape,
                          std::string group = "weights") {
    Slice slice = Slice::whole(shape);
    return {std::move(name), dtype, std::move(shape), std::move(slice), std::move(group)};
  }
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
  std::vector<int64_t> spec_bytes;
  int64_t snapshot_bytes = 0;  // a multiple of the page size
};

// Throws Error{kInvalid} for a slice outside its tensor, a repeated name or a group that cannot be
// part of a file name.
CheckpointLayout plan_checkpoint(std::vector<TensorSpec> specs, int64_t max_file_bytes, int rank);

}  // namespace skein
