#include "skein/checkpoint/hugging_face/torch_tensor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "skein/base/error.h"
#include "skein/checkpoint/format/boxes.h"

namespace skein {
namespace {

// The index of the last element, where all lie inside `elements`.
std::optional<int64_t> last_element(int64_t elements, int64_t offset,
                                    const std::vector<int64_t>& sizes,
                                    const std::vector<int64_t>& strides) {
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto reach = checked_product(sizes[i] - 1, strides[i]);
    if (!reach || *reach > elements - last) return std::nullopt;
    last += *reach;
  }
  return last < elements ? std::optional(last) : std::nullopt;
}

bool is_row_major(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] > 1 && strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

// Whether some dim steps less than what those with smaller strides cover.
bool reaches_twice(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 1) dims.emplace_back(strides[i], sizes[i]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t covered = 0;  // offset of the last element so far
  for (const auto& [stride, size] : dims) {
    if (stride <= covered) return true;
    covered += stride * (size - 1);  // inside the storage, so no overflow
  }
  return false;
}

}  // namespace

TorchTensor tensor_in_storage(const TorchStorage& storage, int64_t offset,
                              const std::vector<int64_t>& sizes,
                              const std::vector<int64_t>& strides) {
  const int64_t element_bytes = safetensors_element_bytes(storage.dtype);
  TorchTensor result;
  result.entry.dtype = storage.dtype;
  result.entry.shape = Shape(sizes);
  const auto bytes = checked_bytes(result.entry.shape, element_bytes);
  const bool is_inside = bytes && offset >= 0 && offset <= storage.elements;
  const bool is_empty = bytes && *bytes == 0;
  const auto last = is_inside && !is_empty ? last_element(storage.elements, offset, sizes, strides)
                                           : std::nullopt;
  if (!is_inside || (!last && !is_empty)) {
    fail(ErrorCode::kInvalid,
         "a tensor of {} with offset {} does not lie in its storage of {} elements",
         result.entry.shape.to_string(), offset, storage.elements);
  }
  result.entry.begin = storage.bytes.begin + offset * element_bytes;
  result.entry.end = storage.bytes.begin + (is_empty ? offset : *last + 1) * element_bytes;
  if (is_empty || is_row_major(sizes, strides)) return result;
  if (reaches_twice(sizes, strides)) {
    fail(ErrorCode::kInvalid, "a tensor of {} reaches elements of its storage twice",
         result.entry.shape.to_string());
  }
  result.strides = strides;
  return result;
}

}  // namespace skein
