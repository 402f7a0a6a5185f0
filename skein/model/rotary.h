// Rotary position embeddings: their constants in config.json, and their tables.
//
// Formula  f[i] = 1 / theta^(2i / D), D = head_dim, i < D / 2; the angle of pair i at position p is
//          p * f[i]. Pair i is dims (i, i + D/2) of a head: halves, as in Hugging Face.
//   linear f[i] / factor.
//   llama3 with wavelength w = 2 pi / f and the length L of original training positions:
//          f where w < L / high_freq_factor, f / factor where w > L / low_freq_factor, between them
//          (1 - s) f / factor + s f with s = (L / w - low) / (high - low).
//   yarn   r f / factor + (1 - r) f with the ramp r = clamp((i - low) / (high - low), 0, 1) between
//          the dims low and high that turn beta_fast and beta_slow times in L positions,
//          D ln(L / (2 pi beta)) / (2 ln theta), rounded outwards unless `truncate` is false.
//   longrope  f[i] / short_factor[i]; f[i] / long_factor[i] in texts of more than L tokens.
//   dynamic   theta grows in texts of more than max_position_embeddings tokens, which Skein
//          refuses: below that it is the plain f.
//          Cosines and sines of yarn and longrope are multiplied by an attention factor. Its
//          default is for yarn m(factor, mscale) / m(factor, mscale_all_dim), or m(factor, 1) where
//          one of the two is missing, with m(s, k) = 0.1 k ln(s) + 1, and 1 for s <= 1; for
//          longrope it is sqrt(1 + ln(factor) / ln(L)).
// Rounding fp32, with the same sequence of operations as transformers on a CPU. The results have
//          the same bits wherever both power functions round alike: this one is correctly rounded,
//          the other is off by up to 1 unit in the last place in about 1 % of values.
// Reads    the older keys (rope_theta, rope_scaling) and those of transformers 5 (rope_parameters);
//          writes the older ones, which both can load
// Errors   parse_rope: Error{kUnsupported} for another type or a key that Skein does not know,
//          kInvalid for values outside their range, spellings that disagree
// Source   transformers 5.24, modeling_rope_utils.py; arXiv:2104.09864; arXiv:2309.00071 (YaRN);
//          arXiv:2402.13753 (LongRoPE); Llama 3.1 reference code
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skein/model/config_keys.h"

namespace skein {

enum class RopeScalingKind : uint8_t { kNone, kLinear, kLlama3, kDynamic, kYarn, kLongrope };

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  // yarn, longrope: 0 is max_positions / original_max_position_embeddings
  double factor = 1;
  double low_freq_factor = 1;                    // llama3
  double high_freq_factor = 4;                   // llama3
  int64_t original_max_position_embeddings = 0;  // llama3, yarn, longrope
  // Absent: the default of the type.
  std::optional<double> attention_factor = {};              // yarn, longrope
  std::optional<double> beta_fast = {}, beta_slow = {};     // yarn
  std::optional<double> mscale = {}, mscale_all_dim = {};   // yarn
  std::optional<bool> truncate = {};                        // yarn
  std::vector<double> short_factor = {}, long_factor = {};  // longrope
  int64_t max_positions = 0;  // max_position_embeddings, where the function depends on it
  bool original_outside =
      false;  // config.json has original_max_position_embeddings beside the rest

  bool operator==(const RopeScaling&) const = default;
};

struct RopeConfig {
  double theta = 10000;
  RopeScaling scaling;

  bool operator==(const RopeConfig&) const = default;
};

// `max_position`: max_position_embeddings.
RopeConfig parse_rope(const ConfigKeys& keys, int64_t max_position, int64_t head_dim,
                      double default_theta = 10000);

// `given`: keys of a configuration that go before those of a file, `json` both together. Leaves one
// spelling where the two use different ones: what is given counts, the file's theta stays.
void prefer_given_rope(const Json& given, Json& json);

// Writes rope_theta and rope_scaling.
void write_rope(const RopeConfig& rope, Json& json);

// `text_length`: tokens of the text, on which longrope and dynamic depend.
std::vector<float> rope_inverse_frequencies(const RopeConfig& rope, int64_t head_dim,
                                            int64_t text_length = 0);

// What cosines and sines are multiplied by.
double rope_attention_factor(const RopeScaling& scaling);

// f32[num_positions, head_dim]; row p: the cosines of the head_dim / 2 angles at position p, then
// their sines, both times the attention factor.
std::vector<float> rope_table(const RopeConfig& rope, int64_t head_dim, int64_t num_positions,
                              int64_t text_length);

// Texts of more tokens have another table; 0: all texts have one.
int64_t rope_changes_beyond(const RopeConfig& rope);

// Which factors longrope takes for texts of that length, as a line for people; "" of other types.
std::string rope_choice(const RopeConfig& rope, int64_t text_length);

}  // namespace skein
