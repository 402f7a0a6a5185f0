// Tensors of a file of torch.save: where they lie in their storages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skein/checkpoint/format/safetensors.h"
#include "skein/checkpoint/hugging_face/stored_zip.h"

namespace skein {

struct TorchTensor {
  // dtype by its safetensors name; begin and end: the bytes from its first element to its last.
  SafetensorsEntry entry;
  std::vector<int64_t> strides;  // in elements; empty: row-major without gaps
};

struct TorchStorage {
  std::string dtype;  // the safetensors name
  int64_t elements = 0;
  StoredRange bytes;
};

// Throws Error{kInvalid} unless the tensor lies in its storage and reaches no element twice. Sizes
// and strides are not negative, and as many.
TorchTensor tensor_in_storage(const TorchStorage& storage, int64_t offset,
                              const std::vector<int64_t>& sizes,
                              const std::vector<int64_t>& strides);

}  // namespace skein
