#include "skein/model/rope.h"

#include <fmt/format.h>

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

RopeScaling parse_scaling(const ConfigKeys& rope, int64_t default_original) {
  RopeScaling scaling;
  const std::string key = rope.find("rope_type") != nullptr ? "rope_type" : "type";
  const std::string type = rope.text(key, "default");
  if (rope.number("partial_rotary_factor", 0, 1, 1.0) != 1) {
    rope.refuse(ErrorCode::kUnsupported, "partial_rotary_factor", "1: the whole head rotates");
  }
  if (type == "default") return scaling;
  if (type != "linear" && type != "llama3") {
    rope.refuse(ErrorCode::kUnsupported, key, "\"default\", \"linear\" or \"llama3\"");
  }
  scaling.factor = rope.number("factor", 1, 1e6);
  if (type == "linear") {
    scaling.kind = RopeScalingKind::kLinear;
    return scaling;
  }
  scaling.kind = RopeScalingKind::kLlama3;
  scaling.low_freq_factor = rope.number("low_freq_factor", 1e-6, 1e6);
  scaling.high_freq_factor = rope.number("high_freq_factor", 1e-6, 1e6);
  if (!(static_cast<float>(scaling.high_freq_factor - scaling.low_freq_factor) > 0)) {
    rope.refuse(ErrorCode::kInvalid, "high_freq_factor",
                fmt::format("more than low_freq_factor {}", scaling.low_freq_factor));
  }
  scaling.original_max_position_embeddings =
      rope.integer("original_max_position_embeddings", 1, kMaxPosition, default_original);
  return scaling;
}

Json rope_scaling_json(const RopeScaling& scaling) {
  switch (scaling.kind) {
    case RopeScalingKind::kNone:
      return nullptr;
    case RopeScalingKind::kLinear:
      // transformers before 4.43 reads "type".
      return {{"type", "linear"}, {"rope_type", "linear"}, {"factor", scaling.factor}};
    case RopeScalingKind::kLlama3:
      return {{"rope_type", "llama3"},
              {"factor", scaling.factor},
              {"low_freq_factor", scaling.low_freq_factor},
              {"high_freq_factor", scaling.high_freq_factor},
              {"original_max_position_embeddings", scaling.original_max_position_embeddings}};
  }
  return nullptr;
}

}  // namespace

RopeConfig parse_rope(const ConfigKeys& keys, int64_t max_position, double default_theta) {
  constexpr double kMinTheta = 1, kMaxTheta = 1e15;
  RopeConfig config;
  config.theta = keys.number("rope_theta", kMinTheta, kMaxTheta, default_theta);
  const int64_t default_original =
      keys.integer("original_max_position_embeddings", 1, kMaxPosition, max_position);
  std::optional<RopeConfig> other;
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const Json* object = keys.find(name);
    if (object == nullptr) continue;
    const ConfigKeys rope(*object, keys.what(), std::string(name) + ".");
    const double theta = rope.number("rope_theta", kMinTheta, kMaxTheta, config.theta);
    if (keys.find("rope_theta") != nullptr && theta != config.theta) {
      rope.refuse(ErrorCode::kInvalid, "rope_theta",
                  fmt::format("{}, as rope_theta says; keep one of the two", config.theta));
    }
    const RopeConfig found{theta, parse_scaling(rope, default_original)};
    if (other && *other != found) {
      keys.refuse(ErrorCode::kInvalid, name, "what rope_scaling says; keep one of the two");
    }
    other = found;
  }
  return other.value_or(config);
}

void write_rope(const RopeConfig& rope, Json& json) {
  json["rope_theta"] = rope.theta;
  json["rope_scaling"] = rope_scaling_json(rope.scaling);
}

std::vector<float> rope_inverse_frequencies(const RopeConfig& rope, int64_t head_dim) {
  const float theta = static_cast<float>(rope.theta);
  std::vector<float> frequencies;
  frequencies.reserve(head_dim / 2);
  for (int64_t dim = 0; dim < head_dim; dim += 2) {
    const float exponent = static_cast<float>(dim) / static_cast<float>(head_dim);
    const float power = static_cast<float>(std::pow(double{theta}, double{exponent}));
    float frequency = 1.0f / power;
    switch (rope.scaling.kind) {
      case RopeScalingKind::kNone:
        break;
      case RopeScalingKind::kLinear:
        frequency /= static_cast<float>(rope.scaling.factor);
        break;
      case RopeScalingKind::kLlama3:
        frequency = scale_llama3(frequency, rope.scaling);
        break;
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

std::vector<float> rope_table(const RopeConfig& rope, int64_t head_dim, int64_t num_positions) {
  const std::vector<float> frequencies = rope_inverse_frequencies(rope, head_dim);
  const size_t half = frequencies.size();
  std::vector<float> table(static_cast<size_t>(num_positions) * 2 * half);
  for (int64_t position = 0; position < num_positions; ++position) {
    float* row = table.data() + static_cast<size_t>(position) * 2 * half;
    for (size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies[i];
      row[i] = std::cos(angle);
      row[half + i] = std::sin(angle);
    }
  }
  return table;
}

}  // namespace skein
