// The header of safetensors, whose tensors are raw bytes. Copies nothing and trusts nothing.
//
// Format   uint64 little-endian n; n bytes of JSON {"name": {"dtype", "shape", "data_offsets"},
//          ..., "__metadata__": {text: text}}; then the data. Offsets count from the end of the
//          header.
// Accepts  n <= 100,000,000; JSON that starts with '{', is UTF-8 and repeats no key; known dtypes;
//          sizes whose product fits; byte ranges that cover the data exactly, in some order, with
//          no hole and no overlap. What the reference implementation refuses is refused here.
// Errors   Error{kInvalid} naming the file, the tensor, what was found and what was expected.
// Source   https://github.com/huggingface/safetensors (format section of its README)
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/tensor/dtype.h"
#include "skein/tensor/shape.h"

namespace skein {

constexpr int64_t kMaxSafetensorsHeaderBytes = 100'000'000;

// Bytes of one element of "F32", "BF16", "U8", ...; 0 for an unknown name.
int64_t safetensors_element_bytes(std::string_view dtype);
// Our dtype for a safetensors name, if there is one; and the reverse.
std::optional<DType> from_safetensors_dtype(std::string_view dtype);
std::string_view to_safetensors_dtype(DType dtype);

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // the safetensors name
  Shape shape;
  int64_t begin = 0;  // bytes from the start of the file
  int64_t end = 0;

  int64_t num_bytes() const { return end - begin; }
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
  int64_t data_begin = 0;  // bytes of the length and the JSON
};

// `file` is the whole file; `what` names it in errors.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::string& what);
// The same of its first bytes, which hold the header, and its size.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> head, int64_t file_bytes,
                                           const std::string& what);

}  // namespace skein
