// Writes safetensors as a stream: first the header, from the known sizes, then the bytes.
//
// Tensors are laid out by decreasing element size, otherwise in the given order, so that every
// tensor is aligned to its elements; the header is padded with spaces to a multiple of 8 bytes. The
// same input gives the same bytes.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "skein/checkpoint/format/file_ops.h"
#include "skein/tensor/dtype.h"
#include "skein/tensor/shape.h"

namespace skein {

struct SafetensorsTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
};

struct SafetensorsLayout {
  std::string header;          // the 8 bytes of length and the JSON
  std::vector<size_t> order;   // which given tensor comes first, second, ...
  std::vector<int64_t> begin;  // of each given tensor, bytes from the start of the file
  std::vector<int64_t> bytes;  // of each given tensor
  int64_t file_bytes = 0;
};

// Throws Error{kInvalid} for a repeated or reserved name, a name that is not UTF-8, a size that
// overflows, or a header above 100 MB.
SafetensorsLayout plan_safetensors(std::span<const SafetensorsTensor> tensors,
                                   const std::map<std::string, std::string>& metadata = {});

class SafetensorsWriter {
 public:
  // Creates `path`, a file or an object, and writes the header. `layout` and `ops` must outlive the
  // writer.
  SafetensorsWriter(const fs::path& path, const SafetensorsLayout& layout, const FileOps& ops);

  // Writes the bytes of the next tensor in layout.order and returns their xxh3-128, which is
  // computed while they are written. Throws Error{kInternal} if their number is wrong, kNoSpace,
  // kIo.
  std::string write(std::span<const std::byte> bytes);
  // The same with a checksum for each segment of the given sizes.
  std::vector<std::string> write_pieces(std::span<const std::byte> bytes,
                                        std::span<const int64_t> piece_bytes);

  // Makes the file durable and closes it; throws Error{kInternal} if a tensor is missing.
  void finish();

 private:
  fs::path path_;
  const SafetensorsLayout& layout_;
  std::unique_ptr<OutputFile> file_;
  size_t next_ = 0;
};

}  // namespace skein
