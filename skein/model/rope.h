// Rotary position embeddings: their constants in config.json, and their tables.
//
// Formula  f[i] = 1 / theta^(2i / head_dim), i < head_dim / 2; the angle of pair i at position p is
//          p * f[i]. Pair i is dims (i, i + head_dim/2) of a head: halves, as in Hugging Face.
//   linear f[i] / factor.
//   llama3 with wavelength w = 2 pi / f and the length L of original training positions:
//          f where w < L / high_freq_factor, f / factor where w > L / low_freq_factor, between them
//          (1 - s) f / factor + s f with s = (L / w - low) / (high - low).
// Rounding fp32, with the same sequence of operations as transformers on a CPU. The results have
//          the same bits wherever both power functions round alike: this one is correctly rounded,
//          the other is off by up to 1 unit in the last place in about 1 % of values.
// Reads    the older keys (rope_theta, rope_scaling) and those of transformers 5 (rope_parameters);
//          writes the older ones, which both can load
// Source   transformers, modeling_rope_utils.py; arXiv:2104.09864; Llama 3.1 reference code
#pragma once

#include <cstdint>
#include <vector>

#include "skein/model/config_keys.h"

namespace skein {

enum class RopeScalingKind : uint8_t { kNone, kLinear, kLlama3 };

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 1;                             // linear, llama3
  double low_freq_factor = 1;                    // llama3
  double high_freq_factor = 4;                   // llama3
  int64_t original_max_position_embeddings = 0;  // llama3

  bool operator==(const RopeScaling&) const = default;
};

struct RopeConfig {
  double theta = 10000;
  RopeScaling scaling;

  bool operator==(const RopeConfig&) const = default;
};

// `max_position`: the default of llama3's original_max_position_embeddings.
RopeConfig parse_rope(const ConfigKeys& keys, int64_t max_position, double default_theta = 10000);

// Writes rope_theta and rope_scaling.
void write_rope(const RopeConfig& rope, Json& json);

std::vector<float> rope_inverse_frequencies(const RopeConfig& rope, int64_t head_dim);

// f32[num_positions, head_dim]; row p: the cosines of the head_dim / 2 angles at position p, then
// their sines.
std::vector<float> rope_table(const RopeConfig& rope, int64_t head_dim, int64_t num_positions);

}  // namespace skein
