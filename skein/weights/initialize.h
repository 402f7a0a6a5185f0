// Initial weights. Each parameter has a random stream of its own, keyed by its name, and is drawn
// in fp32 by global element index, so the weights depend only on the seed and the model.
//
// Formula  norms 1, biases 0; all others normal(0, std), with std = init_std, and for the output
//          projections of attention and MLP init_std / sqrt(2 layers) where scaled_init is set
// Source   Radford et al., "Language models are unsupervised multitask learners", 2019, section 2.3
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "skein/checkpoint/format/boxes.h"
#include "skein/model/decoder.h"
#include "skein/runtime/executor.h"

namespace skein {

struct InitializeOptions {
  uint64_t seed = 1;
  double std = 0.02;
  bool scaled = true;
};

// The expected square of an element of a parameter.
double expected_square(const ParameterSpec& spec, int64_t num_layers,
                       const InitializeOptions& options);

// Draws elements [begin, begin + out.size()) of a parameter, in fp32.
void draw_parameter(const ParameterSpec& spec, int64_t num_layers, const InitializeOptions& options,
                    int64_t begin, std::span<float> out);

// Fills this rank's part of every parameter, and of the fp32 master copy where there is one.
void initialize_parameters(Executor& executor, const DecoderConfig& config,
                           const InitializeOptions& options);

// Stores elements, from `begin` on, of the rank's box of a parameter, in the parameter's dtype, and
// in the master copy where there is one. Of a tensor that holds only a range of the box (ZeRO), the
// elements in that range.
void upload_parameter(Executor& executor, const std::string& name, int64_t begin,
                      std::span<const float> values);

// Fills this rank's part of a parameter, and of its master copy: fill(segment, values) gives the
// elements of a box of it; rows that only pad the vocabulary become 0.
void fill_parameter(Executor& executor, const ParameterSpec& spec,
                    const std::function<void(const Box&, std::span<float>)>& fill);

// The rows of `box` that a tensor of that shape has: less where the vocabulary is padded, perhaps
// none.
Box rows_inside(const Box& box, const Shape& shape);

// Uploads the inputs that depend only on the model and, where text_length is given, on that of the
// texts: else they have num_positions tokens.
void upload_tables(Executor& executor, const DecoderConfig& config, int64_t num_positions,
                   int64_t text_length = 0);

// Parameters are filled in segments of at most this many elements, so that start-up needs little
// memory beside the arenas.
inline constexpr int64_t kUploadPieceElements = int64_t{1} << 21;

// Calls use(segment, begin) for ranges of rows of a box with about that many elements each; `begin`
// is the index of the segment's first element in the box.
void for_each_piece(const Box& box, const std::function<void(const Box&, int64_t)>& use);

}  // namespace skein
