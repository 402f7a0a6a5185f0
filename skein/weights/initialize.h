// Initial weights: drawn in fp32 as if whole, from a stream that belongs to the parameter's name,
// so that they depend on the seed and the model alone.
//
// Formula  norms 1, biases 0; everything else normal(0, std), with std = init_std, and for the
//          output projections of attention and MLP init_std / sqrt(2 layers) where scaled_init
// Source   Radford et al., "Language models are unsupervised multitask learners", 2019, section 2.3
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "skein/checkpoint/boxes.h"
#include "skein/model/decoder.h"
#include "skein/runtime/executor.h"

namespace skein {

struct InitializeOptions {
  uint64_t seed = 1;
  double std = 0.02;
  bool scaled = true;
};

// Of the square of each element of a parameter.
double expected_square(const ParameterSpec& spec, int64_t num_layers,
                       const InitializeOptions& options);

// Element `begin` .. begin + out.size() of a parameter, in fp32.
void draw_parameter(const ParameterSpec& spec, int64_t num_layers, const InitializeOptions& options,
                    int64_t begin, std::span<float> out);

// Fills this rank's part of every parameter that it has, and of the fp32 master copy where there is
// one.
void initialize_parameters(Executor& executor, const DecoderConfig& config,
                           const InitializeOptions& options);

// Stores elements `begin` … of the rank's box of a parameter as its dtype, and as its master copy
// where there is one; of a range (ZeRO) what lies in it.
void upload_parameter(Executor& executor, const std::string& name, int64_t begin,
                      std::span<const float> values);

// The inputs that depend on the model alone; they stay.
void upload_tables(Executor& executor, const DecoderConfig& config, int64_t num_positions);

// Parameters are filled in pieces of at most this many elements, so that start-up needs little
// memory beside the plan.
inline constexpr int64_t kUploadPieceElements = int64_t{1} << 21;

// Calls use(piece, begin) for row ranges of a box of about that many elements; `begin` is the first
// element of the piece within the box.
void for_each_piece(const Box& box, const std::function<void(const Box&, int64_t)>& use);

}  // namespace skein
