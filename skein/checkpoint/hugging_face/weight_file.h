// One file of weights of a Hugging Face model, mapped: tensors are read when they are needed.
//
// Formats  safetensors (safetensors.h); of names that end in .bin torch.save's (torch_file.h)
// Errors   those of the format, naming the file
// Threads  a WeightFile may be read by several threads
#pragma once

#include <map>
#include <span>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/checkpoint/format/boxes.h"
#include "skein/checkpoint/format/safetensors.h"

namespace skein {

class WeightFile {
 public:
  explicit WeightFile(const fs::path& path);

  const fs::path& path() const { return file_.path(); }
  // Their order and number do not change.
  std::span<const SafetensorsEntry> entries() const { return entries_; }

  // Fills `target` with a box of the tensor, as `dtype`. Preconditions: entry is one of entries(),
  // can_convert(entry.dtype, dtype), the box lies in it, and target has its bytes.
  void read(const SafetensorsEntry& entry, const Box& box, DType dtype,
            std::span<std::byte> target) const;

 private:
  MappedFile file_;
  std::vector<SafetensorsEntry> entries_;
  // Of those that are not row-major, by their index; bytes between their elements are others'.
  std::map<size_t, std::vector<int64_t>> strides_;
};

}  // namespace skein
