// Any bytes as pytorch_model.bin must give an Error, or tensors that lie in the file.
#include <cstdlib>

#include "skein/base/error.h"
#include "skein/checkpoint/hugging_face/torch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = std::as_bytes(std::span(data, size));
    for (const skein::TorchTensor& tensor : skein::parse_torch_file(file, "fuzz")) {
      const auto& [name, dtype, shape, begin, end] = tensor.entry;
      if (begin < 0 || begin > end || end > static_cast<int64_t>(size)) std::abort();
      const int64_t element_bytes = skein::safetensors_element_bytes(dtype);
      int64_t last = shape.num_elements() - 1;
      if (!tensor.strides.empty()) {
        last = 0;
        for (int dim = 0; dim < shape.rank(); ++dim) {
          last += (shape.dim(dim) - 1) * tensor.strides[static_cast<size_t>(dim)];
        }
      }
      if ((last + 1) * element_bytes != end - begin) std::abort();
    }
  } catch (const skein::Error&) {
  }
  return 0;
}
