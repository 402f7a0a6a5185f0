#include "skein/train/initialize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "skein/base/hash.h"
#include "skein/base/philox.h"
#include "skein/base/units.h"

namespace skein {
namespace {

double standard_deviation(const ParameterSpec& spec, int64_t num_layers,
                          const InitializeOptions& options) {
  const bool is_output =
      spec.kind == ParameterKind::kAttentionOut || spec.kind == ParameterKind::kMlpOut;
  return options.scaled && is_output
             ? options.std / std::sqrt(2.0 * static_cast<double>(num_layers))
             : options.std;
}

}  // namespace

void draw_parameter(const ParameterSpec& spec, int64_t num_layers, const InitializeOptions& options,
                    int64_t begin, std::span<float> out) {
  if (spec.kind == ParameterKind::kNorm || spec.kind == ParameterKind::kBias) {
    std::fill(out.begin(), out.end(), spec.kind == ParameterKind::kNorm ? 1.0f : 0.0f);
    return;
  }
  const auto stream = static_cast<uint32_t>(hash_name(spec.name));
  const Philox philox(options.seed, RandomPurpose::kInitialize, stream, 0);
  const auto scale = static_cast<float>(standard_deviation(spec, num_layers, options));
  const int64_t count = static_cast<int64_t>(out.size());
  constexpr int64_t kPiece = 1 << 14;
#pragma omp parallel for schedule(static)
  for (int64_t piece = 0; piece < ceil_div(count, kPiece); ++piece) {
    const int64_t end = std::min(count, (piece + 1) * kPiece);
    int64_t i = piece * kPiece;
    while (i < end) {
      const auto element = static_cast<uint64_t>(begin + i);
      const std::array<float, 4> normals = philox.normals(element / 4);
      for (uint64_t lane = element % 4; lane < 4 && i < end; ++lane) {
        out[i++] = scale * normals[lane];
      }
    }
  }
}

void for_each_piece(const Shape& shape, const std::function<void(const Slice&, int64_t)>& use) {
  const int64_t num_rows = shape.dim(0);
  const int64_t row_elements = shape.num_elements() / num_rows;
  const int64_t step = std::max<int64_t>(1, kUploadPieceElements / row_elements);
  for (int64_t row = 0; row < num_rows; row += step) {
    Slice box = Slice::whole(shape);
    box.offset[0] = row;
    box.shape.set_dim(0, std::min(step, num_rows - row));
    use(box, row * row_elements);
  }
}

void upload_parameter(Executor& executor, const std::string& name, int64_t begin,
                      std::span<const float> values) {
  const auto upload_at = [&](const View& target, const void* source) {
    const int64_t size = size_of(target.dtype);
    executor.device().upload(static_cast<char*>(target.data) + begin * size, source,
                             static_cast<int64_t>(values.size()) * size);
  };
  const std::string master = "master." + name;
  if (executor.has(master)) upload_at(executor.view(master), values.data());
  if (executor.view(name).dtype == DType::kF32)
    return upload_at(executor.view(name), values.data());
  std::vector<bfloat16> rounded(values.size());
  for (size_t i = 0; i < values.size(); ++i) rounded[i] = bfloat16(values[i]);
  upload_at(executor.view(name), rounded.data());
}

void initialize_parameters(Executor& executor, const LlamaConfig& config,
                           const InitializeOptions& options) {
  std::vector<float> values;
  for (const ParameterSpec& spec : parameter_specs(config)) {
    for_each_piece(spec.shape, [&](const Slice& box, int64_t begin) {
      values.resize(static_cast<size_t>(box.shape.num_elements()));
      draw_parameter(spec, config.num_hidden_layers, options, begin, values);
      upload_parameter(executor, spec.name, begin, values);
    });
  }
}

}  // namespace skein
