#include "skein/checkpoint/hugging_face/weight_file.h"

#include <algorithm>
#include <cstring>

#include "skein/checkpoint/format/convert.h"
#include "skein/checkpoint/hugging_face/torch_file.h"

namespace skein {
namespace {

// Copies elements [first, first + count), in row-major order, of a tensor with strides.
void gather(const std::byte* tensor, const Shape& shape, const std::vector<int64_t>& strides,
            int64_t element_bytes, int64_t first, int64_t count, std::byte* target) {
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
  int64_t rest = first, at = 0;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    index[dim] = rest % shape.dim(dim);
    rest /= shape.dim(dim);
    at += index[dim] * strides[dim];
  }
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(target + i * element_bytes, tensor + at * element_bytes,
                static_cast<size_t>(element_bytes));
    for (int dim = shape.rank() - 1; dim >= 0; --dim) {
      at += strides[dim];
      if (++index[dim] < shape.dim(dim)) break;
      at -= index[dim] * strides[dim];
      index[dim] = 0;
    }
  }
}

}  // namespace

WeightFile::WeightFile(const fs::path& path) : file_(path) {
  if (path.extension() != ".bin") {
    entries_ = parse_safetensors_header(file_.bytes(), path.string()).entries;
    return;
  }
  for (TorchTensor& tensor : parse_torch_file(file_.bytes(), path.string())) {
    if (!tensor.strides.empty()) strides_[entries_.size()] = std::move(tensor.strides);
    entries_.push_back(std::move(tensor.entry));
  }
}

void WeightFile::read(const SafetensorsEntry& entry, const Box& box, DType dtype,
                      std::span<std::byte> target) const {
  constexpr int64_t kGathered = int64_t{1} << 16;  // elements at a time
  const auto bytes = file_.bytes().subspan(entry.begin, entry.num_bytes());
  const int64_t element_bytes = safetensors_element_bytes(entry.dtype);
  const auto strides = strides_.find(static_cast<size_t>(&entry - entries_.data()));
  std::vector<std::byte> gathered;
  for_each_run(Box::whole(entry.shape), box, [&](int64_t from, int64_t to, int64_t count) {
    if (strides == strides_.end()) {
      convert_elements(entry.dtype, bytes.data() + from * element_bytes, dtype,
                       target.data() + to * size_of(dtype), count);
      return;
    }
    gathered.resize(static_cast<size_t>(std::min(count, kGathered) * element_bytes));
    for (int64_t done = 0; done < count; done += kGathered) {
      const int64_t now = std::min(kGathered, count - done);
      gather(bytes.data(), entry.shape, strides->second, element_bytes, from + done, now,
             gathered.data());
      convert_elements(entry.dtype, gathered.data(), dtype,
                       target.data() + (to + done) * size_of(dtype), now);
    }
  });
  file_.forget(bytes);
}

}  // namespace skein
