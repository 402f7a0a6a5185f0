#include "skein/model/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace skein {
namespace {

// The reference divides a scalar by a tensor as a reciprocal and a product.
float divide_scalar(float scalar, float value) { return (1.0f / value) * scalar; }

float scale_llama3(float frequency, const RopeScaling& scaling) {
  const double length = static_cast<double>(scaling.original_max_position_embeddings);
  const float factor = static_cast<float>(scaling.factor);
  const float low = static_cast<float>(scaling.low_freq_factor);
  const float longest = static_cast<float>(length / scaling.low_freq_factor);
  const float shortest = static_cast<float>(length / scaling.high_freq_factor);
  const float range = static_cast<float>(scaling.high_freq_factor - scaling.low_freq_factor);

  const float wavelength = divide_scalar(static_cast<float>(2 * std::numbers::pi), frequency);
  if (wavelength < shortest) return frequency;
  if (wavelength > longest) return frequency / factor;
  const float smooth = (divide_scalar(static_cast<float>(length), wavelength) - low) / range;
  return (1.0f - smooth) * frequency / factor + smooth * frequency;
}

double factor_of(const RopeScaling& scaling) {
  if (scaling.factor != 0) return scaling.factor;
  return static_cast<double>(scaling.max_positions) /
         static_cast<double>(scaling.original_max_position_embeddings);
}

// theta^(2i / head_dim) of each pair.
std::vector<float> powers(double theta, int64_t head_dim) {
  const float base = static_cast<float>(theta);
  std::vector<float> powers;
  powers.reserve(head_dim / 2);
  for (int64_t dim = 0; dim < head_dim; dim += 2) {
    const float exponent = static_cast<float>(dim) / static_cast<float>(head_dim);
    powers.push_back(static_cast<float>(std::pow(double{base}, double{exponent})));
  }
  return powers;
}

// The pairs between which yarn passes from the plain frequencies to the scaled ones.
struct Ramp {
  float begin = 0, length = 1;

  Ramp() = default;
  Ramp(const RopeConfig& rope, int64_t head_dim) {
    const RopeScaling& scaling = rope.scaling;
    const double dim = static_cast<double>(head_dim);
    const auto turning = [&](double times) {
      const double length = static_cast<double>(scaling.original_max_position_embeddings);
      return dim * std::log(length / (times * 2 * std::numbers::pi)) / (2 * std::log(rope.theta));
    };
    double low = turning(scaling.beta_fast.value_or(32));
    double high = turning(scaling.beta_slow.value_or(1));
    if (scaling.truncate.value_or(true)) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, dim - 1);
    if (low == high) high += 0.001;
    begin = static_cast<float>(low);
    length = static_cast<float>(high - low);
  }
  float at(size_t pair) const {
    return std::clamp((static_cast<float>(pair) - begin) / length, 0.0f, 1.0f);
  }
};

double dynamic_theta(const RopeConfig& rope, int64_t head_dim, int64_t text_length) {
  const double factor = rope.scaling.factor, dim = static_cast<double>(head_dim);
  const double longest = static_cast<double>(rope.scaling.max_positions);
  const double length = std::max(static_cast<double>(text_length), longest);
  return rope.theta * std::pow(factor * length / longest - (factor - 1), dim / (dim - 2));
}

bool is_long(const RopeScaling& scaling, int64_t text_length) {
  return text_length > scaling.original_max_position_embeddings;
}

double yarn_scale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

}  // namespace

double rope_attention_factor(const RopeScaling& scaling) {
  const bool is_yarn = scaling.kind == RopeScalingKind::kYarn;
  if (!is_yarn && scaling.kind != RopeScalingKind::kLongrope) return 1;
  if (scaling.attention_factor) return *scaling.attention_factor;
  const double factor = factor_of(scaling);
  if (is_yarn) {
    const double mscale = scaling.mscale.value_or(0), all = scaling.mscale_all_dim.value_or(0);
    if (mscale == 0 || all == 0) return yarn_scale(factor, 1);
    return yarn_scale(factor, mscale) / yarn_scale(factor, all);
  }
  if (factor <= 1) return 1;
  const double length = static_cast<double>(scaling.original_max_position_embeddings);
  return std::sqrt(1 + std::log(factor) / std::log(length));
}

std::vector<float> rope_inverse_frequencies(const RopeConfig& rope, int64_t head_dim,
                                            int64_t text_length) {
  const RopeScaling& scaling = rope.scaling;
  const bool is_dynamic = scaling.kind == RopeScalingKind::kDynamic;
  std::vector<float> frequencies =
      powers(is_dynamic ? dynamic_theta(rope, head_dim, text_length) : rope.theta, head_dim);
  const float factor = static_cast<float>(factor_of(scaling));
  const Ramp ramp = scaling.kind == RopeScalingKind::kYarn ? Ramp(rope, head_dim) : Ramp();
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float power = frequencies[i], plain = 1.0f / power;
    switch (scaling.kind) {
      case RopeScalingKind::kNone:
      case RopeScalingKind::kDynamic:
        frequencies[i] = plain;
        break;
      case RopeScalingKind::kLinear:
        frequencies[i] = plain / factor;
        break;
      case RopeScalingKind::kLlama3:
        frequencies[i] = scale_llama3(plain, scaling);
        break;
      case RopeScalingKind::kYarn: {
        const float kept = 1.0f - ramp.at(i);
        frequencies[i] = 1.0f / (factor * power) * (1.0f - kept) + plain * kept;
        break;
      }
      case RopeScalingKind::kLongrope: {
        const auto& by = is_long(scaling, text_length) ? scaling.long_factor : scaling.short_factor;
        frequencies[i] = 1.0f / (static_cast<float>(by.at(i)) * power);
        break;
      }
    }
  }
  return frequencies;
}

std::vector<float> rope_table(const RopeConfig& rope, int64_t head_dim, int64_t num_positions,
                              int64_t text_length) {
  const std::vector<float> frequencies = rope_inverse_frequencies(rope, head_dim, text_length);
  const float scale = static_cast<float>(rope_attention_factor(rope.scaling));
  const size_t half = frequencies.size();
  std::vector<float> table(static_cast<size_t>(num_positions) * 2 * half);
  for (int64_t position = 0; position < num_positions; ++position) {
    float* row = table.data() + static_cast<size_t>(position) * 2 * half;
    for (size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies[i];
      row[i] = std::cos(angle) * scale;
      row[half + i] = std::sin(angle) * scale;
    }
  }
  return table;
}

int64_t rope_changes_beyond(const RopeConfig& rope) {
  const bool is_longrope = rope.scaling.kind == RopeScalingKind::kLongrope;
  return is_longrope ? rope.scaling.original_max_position_embeddings : 0;
}

std::string rope_choice(const RopeConfig& rope, int64_t text_length) {
  if (rope.scaling.kind != RopeScalingKind::kLongrope) return "";
  const bool takes_long = is_long(rope.scaling, text_length);
  return fmt::format(
      "rope_scaling is longrope: rows of {} tokens take {}, since original_max_position_embeddings "
      "is {}",
      text_length, takes_long ? "long_factor" : "short_factor",
      rope.scaling.original_max_position_embeddings);
}

}  // namespace skein
