#include "skein/weights/initialize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "skein/base/numbers/hash.h"
#include "skein/base/numbers/philox.h"
#include "skein/base/text/units.h"
#include "skein/ops/optimizer.h"
#include "skein/ops/simd/normals_cpu.h"

namespace skein {
namespace {

double standard_deviation(const ParameterSpec& spec, int64_t num_layers,
                          const InitializeOptions& options) {
  return options.scaled && spec.init == Init::kResidual
             ? options.std / std::sqrt(2.0 * static_cast<double>(num_layers))
             : options.std;
}

}  // namespace

double expected_square(const ParameterSpec& spec, int64_t num_layers,
                       const InitializeOptions& options) {
  if (spec.init == Init::kOnes) return 1;
  if (spec.init == Init::kZeros) return 0;
  const double std = standard_deviation(spec, num_layers, options);
  return std * std;
}

void draw_parameter(const ParameterSpec& spec, int64_t num_layers, const InitializeOptions& options,
                    int64_t begin, std::span<float> out) {
  if (spec.init == Init::kOnes || spec.init == Init::kZeros) {
    std::fill(out.begin(), out.end(), spec.init == Init::kOnes ? 1.0f : 0.0f);
    return;
  }
  const auto stream = static_cast<uint32_t>(hash_name(spec.name));
  const auto scale = static_cast<float>(standard_deviation(spec, num_layers, options));
  const int64_t count = static_cast<int64_t>(out.size());
  constexpr int64_t kPiece = 1 << 14;
#pragma omp parallel for schedule(static)
  for (int64_t piece = 0; piece < ceil_div(count, kPiece); ++piece) {
    const int64_t at = piece * kPiece;
    draw_normals(options.seed, RandomPurpose::kInitialize, stream,
                 static_cast<uint64_t>(begin + at), scale,
                 out.subspan(at, std::min(kPiece, count - at)));
  }
}

void for_each_piece(const Box& box, const std::function<void(const Box&, int64_t)>& use) {
  const int64_t num_rows = box.shape.dim(0);
  if (num_rows == 0) return;
  const int64_t row_elements = box.shape.num_elements() / num_rows;
  const int64_t step = std::max<int64_t>(1, kUploadPieceElements / row_elements);
  for (int64_t row = 0; row < num_rows; row += step) {
    Box piece = box;
    piece.offset[0] += row;
    piece.shape.set_dim(0, std::min(step, num_rows - row));
    use(piece, row * row_elements);
  }
}

void upload_parameter(Executor& executor, const std::string& name, int64_t begin,
                      std::span<const float> values) {
  std::vector<bfloat16> rounded;
  for (const std::string& target : {name, state_name(kMasterRow, name)}) {
    if (!executor.has(target)) continue;
    const View view = executor.view(target);
    const FlatRange range = executor.range(target);
    const int64_t first = std::max(begin, range.begin);
    const int64_t last =
        std::min(begin + static_cast<int64_t>(values.size()), range.begin + range.count);
    if (first >= last) continue;
    const std::span<const float> part = values.subspan(first - begin, last - first);
    const void* source = part.data();
    if (view.dtype == DType::kBF16) {
      rounded.resize(part.size());
#pragma omp parallel for schedule(static)
      for (size_t i = 0; i < part.size(); ++i) rounded[i] = bfloat16(part[i]);
      source = rounded.data();
    }
    const int64_t size = size_of(view.dtype);
    executor.device().upload(static_cast<char*>(view.data) + (first - range.begin) * size, source,
                             (last - first) * size);
  }
}

namespace {

// Draws a segment of a parameter, row by row if the box holds only some of the columns.
void draw_piece(const ParameterSpec& spec, int64_t num_layers, const InitializeOptions& options,
                const Box& piece, std::span<float> out) {
  const int64_t global_cols = spec.shape.num_elements() / spec.shape.dim(0);
  const int64_t rows = piece.shape.dim(0), cols = piece.shape.num_elements() / rows;
  const int64_t first_col = piece.shape.rank() > 1 ? piece.offset[1] : 0;
  const int64_t first = piece.offset[0] * global_cols + first_col;
  if (cols == global_cols) return draw_parameter(spec, num_layers, options, first, out);
  for (int64_t row = 0; row < rows; ++row) {
    draw_parameter(spec, num_layers, options, first + row * global_cols,
                   out.subspan(row * cols, cols));
  }
}

}  // namespace

void initialize_parameters(Executor& executor, const DecoderConfig& config,
                           const InitializeOptions& options) {
  for (const ParameterSpec& spec : parameter_specs(config)) {
    if (!executor.has(spec.name)) continue;
    fill_parameter(executor, spec, [&](const Box& piece, std::span<float> values) {
      draw_piece(spec, config.num_hidden_layers, options, piece, values);
    });
  }
}

void fill_parameter(Executor& executor, const ParameterSpec& spec,
                    const std::function<void(const Box&, std::span<float>)>& fill) {
  const Box box = executor.box(spec.name), inside = rows_inside(box, spec.shape);
  std::vector<float> values;
  for_each_piece(inside, [&](const Box& piece, int64_t begin) {
    values.resize(static_cast<size_t>(piece.shape.num_elements()));
    fill(piece, values);
    upload_parameter(executor, spec.name, begin, values);
  });
  const int64_t all = box.shape.num_elements();
  for (int64_t done = inside.shape.num_elements(); done < all;) {
    values.assign(static_cast<size_t>(std::min(kUploadPieceElements, all - done)), 0.0f);
    upload_parameter(executor, spec.name, done, values);
    done += std::ssize(values);
  }
}

Box rows_inside(const Box& box, const Shape& shape) {
  Box inside = box;
  inside.shape.set_dim(0, std::clamp<int64_t>(shape.dim(0) - box.offset[0], 0, box.shape.dim(0)));
  return inside;
}

void upload_tables(Executor& executor, const DecoderConfig& config, int64_t num_positions,
                   int64_t text_length) {
  const int64_t length = text_length > 0 ? text_length : num_positions;
  for (const DecoderTable& table : decoder_tables(config, num_positions)) {
    const std::vector<float> values = table.values(length);
    executor.upload(table.name, values.data(), static_cast<int64_t>(values.size() * sizeof(float)));
  }
}

}  // namespace skein
