#include "skein/weights/packed_weights.h"

#include <algorithm>
#include <vector>

#include "skein/ops/packed_linear/packed_linear.h"
#include "skein/weights/initialize.h"

namespace skein {
namespace {

// Rows that are packed together begin at multiples of this: a multiple of every panel's width.
constexpr int64_t kPackedRows = 256;

}  // namespace

void fill_packed_weight(Executor& executor, const ParameterSpec& spec,
                        const std::function<void(const Box&, DType, std::span<std::byte>)>& read) {
  const std::string name = packed_name(spec.name);
  if (!executor.has(name)) return;
  const DType dtype = executor.view(decoder_names::kEmbeddingWeight).dtype;  // of all weights
  const int64_t rows = spec.shape.dim(0), cols = spec.shape.dim(1);
  const int64_t fit = std::max<int64_t>(kUploadPieceElements / cols / kPackedRows, 1) * kPackedRows;
  const View packed = executor.view(name);
  const Kernel& kernel = executor.device().kernels().at("pack_weight");
  std::vector<std::byte> memory;
  for (int64_t begin = 0; begin < rows; begin += fit) {
    const int64_t count = std::min(fit, rows - begin);
    memory.resize(static_cast<size_t>(count * cols * size_of(dtype)));
    read({{begin, 0}, {count, cols}}, dtype, memory);
    const int64_t words = packed_weight_words(dtype, count, cols);
    const int64_t before = packed_weight_words(dtype, begin, cols);
    KernelCall call;
    call.inputs = {{memory.data(), dtype, {count, cols}, cols}};
    call.outputs = {{packed.as<uint32_t>() + before, DType::kI32, {words}, words}};
    kernel.run(call);
  }
}

}  // namespace skein
