#include "skein/model/llama/rope.h"

#include <cmath>
#include <numbers>

namespace skein {
namespace {

// Division of a scalar by a tensor is a reciprocal and a product in the reference.
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

}  // namespace

std::vector<float> rope_inverse_frequencies(const LlamaConfig& config) {
  const float theta = static_cast<float>(config.rope_theta);
  const float head_dim = static_cast<float>(config.head_dim);
  std::vector<float> frequencies;
  frequencies.reserve(config.head_dim / 2);
  for (int64_t dim = 0; dim < config.head_dim; dim += 2) {
    const float exponent = static_cast<float>(dim) / head_dim;
    const float power = static_cast<float>(std::pow(double{theta}, double{exponent}));
    float frequency = 1.0f / power;
    switch (config.rope_scaling.kind) {
      case RopeScalingKind::kNone:
        break;
      case RopeScalingKind::kLinear:
        frequency /= static_cast<float>(config.rope_scaling.factor);
        break;
      case RopeScalingKind::kLlama3:
        frequency = scale_llama3(frequency, config.rope_scaling);
        break;
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

}  // namespace skein
