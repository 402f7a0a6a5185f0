// RoPE in config.json.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "skein/model/rotary.h"

namespace skein {
namespace {

constexpr double kMinTheta = 1, kMaxTheta = 1e15, kMost = 1e6;
constexpr const char* kOriginal = "original_max_position_embeddings";

struct RopeType {
  std::string_view name;
  RopeScalingKind kind;
};
constexpr std::array kTypes = {
    RopeType{"default", RopeScalingKind::kNone},      RopeType{"linear", RopeScalingKind::kLinear},
    RopeType{"dynamic", RopeScalingKind::kDynamic},   RopeType{"yarn", RopeScalingKind::kYarn},
    RopeType{"longrope", RopeScalingKind::kLongrope}, RopeType{"llama3", RopeScalingKind::kLlama3}};

std::string_view name_of(RopeScalingKind kind) {
  for (const RopeType& type : kTypes) {
    if (type.kind == kind) return type.name;
  }
  return "default";
}

// Of all types, since the keys of another type have no effect; `finetuned` says where weights are
// from.
constexpr std::array<std::string_view, 17> kKeys = {
    "rope_type",        "type",
    "rope_theta",       "partial_rotary_factor",
    "factor",           "low_freq_factor",
    "high_freq_factor", "original_max_position_embeddings",
    "attention_factor", "beta_fast",
    "beta_slow",        "mscale",
    "mscale_all_dim",   "truncate",
    "short_factor",     "long_factor",
    "finetuned"};

void refuse_unknown_keys(const ConfigKeys& rope) {
  for (const std::string& key : rope.names()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end()) continue;
    rope.refuse(ErrorCode::kUnsupported, key,
                fmt::format("none: of RoPE Skein knows {}", fmt::join(kKeys, ", ")));
  }
}

RopeScalingKind parse_type(const ConfigKeys& rope) {
  const std::string key = rope.find("rope_type") != nullptr ? "rope_type" : "type";
  const std::string name = rope.text(key, "default");
  const auto found = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const RopeType& type) { return type.name == name; });
  if (found == kTypes.end()) {
    std::string names;
    for (size_t i = 0; i < kTypes.size(); ++i) {
      names += fmt::format("{}\"{}\"",
                           i == 0                  ? ""
                           : i + 1 < kTypes.size() ? ", "
                                                   : " or ",
                           kTypes[i].name);
    }
    rope.refuse(ErrorCode::kUnsupported, key, names);
  }
  if (rope.text("type", name) != name) {
    rope.refuse(ErrorCode::kInvalid, "type",
                fmt::format("\"{}\", as rope_type says; keep one of the two", name));
  }
  return found->kind;
}

// A number that has an effect only where it is given; where 0 is as good as none, 0 is none.
std::optional<double> optional_number(const ConfigKeys& rope, const char* key,
                                      bool zero_is_none = true) {
  if (rope.find(key) == nullptr) return std::nullopt;
  const double value = rope.number(key, 0, kMost);
  return zero_is_none && value == 0 ? std::nullopt : std::optional(value);
}

void parse_llama3(const ConfigKeys& rope, RopeScaling& scaling) {
  scaling.factor = rope.number("factor", 1, kMost);
  scaling.low_freq_factor = rope.number("low_freq_factor", 1e-6, kMost);
  scaling.high_freq_factor = rope.number("high_freq_factor", 1e-6, kMost);
  if (static_cast<float>(scaling.high_freq_factor - scaling.low_freq_factor) > 0) return;
  rope.refuse(ErrorCode::kInvalid, "high_freq_factor",
              fmt::format("more than low_freq_factor {}", scaling.low_freq_factor));
}

void parse_yarn(const ConfigKeys& rope, double theta, RopeScaling& scaling) {
  // null: the ratio of the lengths; transformers does not load a file without the key.
  const bool is_ratio = rope.has("factor") && rope.find("factor") == nullptr;
  scaling.factor = is_ratio ? 0 : rope.number("factor", 1, kMost);
  scaling.attention_factor = optional_number(rope, "attention_factor", false);
  scaling.beta_fast = optional_number(rope, "beta_fast");
  scaling.beta_slow = optional_number(rope, "beta_slow");
  scaling.mscale = optional_number(rope, "mscale");
  scaling.mscale_all_dim = optional_number(rope, "mscale_all_dim");
  if (rope.has("truncate")) scaling.truncate = rope.boolean("truncate", false);
  if (theta > 1) return;
  fail(ErrorCode::kInvalid, "{}: rope_theta is {}, expected more than 1 with yarn", rope.what(),
       theta);
}

void parse_longrope(const ConfigKeys& rope, int64_t head_dim, RopeScaling& scaling) {
  const auto factors = [&](const char* key) {
    return rope.numbers(key, static_cast<size_t>(head_dim / 2), 1e-6, kMost);
  };
  scaling.short_factor = factors("short_factor");
  scaling.long_factor = factors("long_factor");
  scaling.factor = rope.find("factor") == nullptr ? 0 : rope.number("factor", 1, kMost);
  scaling.attention_factor = optional_number(rope, "attention_factor", false);
  if (scaling.attention_factor || scaling.original_max_position_embeddings > 1) return;
  fail(ErrorCode::kInvalid, "{}: {} is 1, expected more with longrope, or an attention_factor",
       rope.what(), kOriginal);
}

// `keys`: of config.json as a whole.
RopeScaling parse_scaling(const ConfigKeys& keys, const ConfigKeys& rope, int64_t max_position,
                          int64_t head_dim, double theta) {
  RopeScaling scaling;
  if (rope.number("partial_rotary_factor", 0, 1, 1.0) != 1) {
    rope.refuse(ErrorCode::kUnsupported, "partial_rotary_factor", "1: the whole head rotates");
  }
  scaling.kind = parse_type(rope);
  refuse_unknown_keys(rope);
  using enum RopeScalingKind;
  const RopeScalingKind kind = scaling.kind;
  if (kind == kLlama3 || kind == kYarn || kind == kLongrope) {
    // As in transformers 5, the one outside counts.
    scaling.original_outside = keys.find(kOriginal) != nullptr;
    scaling.original_max_position_embeddings =
        (scaling.original_outside ? keys : rope).integer(kOriginal, 1, kMaxPosition, max_position);
  }
  if (kind == kLinear || kind == kDynamic) scaling.factor = rope.number("factor", 1, kMost);
  if (kind == kLlama3) parse_llama3(rope, scaling);
  if (kind == kYarn) parse_yarn(rope, theta, scaling);
  if (kind == kLongrope) parse_longrope(rope, head_dim, scaling);
  if (kind == kDynamic && head_dim == 2) {
    fail(ErrorCode::kInvalid, "{}: head_dim is 2, expected at least 4 with rope_type \"dynamic\"",
         rope.what());
  }
  if (kind == kDynamic || scaling.factor == 0) scaling.max_positions = max_position;
  return scaling;
}

Json rope_scaling_json(const RopeScaling& scaling) {
  using enum RopeScalingKind;
  const RopeScalingKind kind = scaling.kind;
  if (kind == kNone) return nullptr;
  Json json = {{"rope_type", name_of(kind)}};
  // transformers before 4.43 reads "type".
  if (kind == kLinear || kind == kDynamic) json["type"] = name_of(kind);
  if (scaling.factor != 0) {
    json["factor"] = scaling.factor;
  } else if (kind == kYarn) {
    json["factor"] = nullptr;
  }
  if (kind == kLlama3) {
    json["low_freq_factor"] = scaling.low_freq_factor;
    json["high_freq_factor"] = scaling.high_freq_factor;
  }
  if (kind == kLlama3 || kind == kYarn || kind == kLongrope) {
    json[kOriginal] = scaling.original_max_position_embeddings;
  }
  const auto add = [&](const char* key, const auto& value) {
    if (value) json[key] = *value;
  };
  add("attention_factor", scaling.attention_factor);
  add("beta_fast", scaling.beta_fast);
  add("beta_slow", scaling.beta_slow);
  add("mscale", scaling.mscale);
  add("mscale_all_dim", scaling.mscale_all_dim);
  add("truncate", scaling.truncate);
  if (kind == kLongrope) {
    json["short_factor"] = scaling.short_factor;
    json["long_factor"] = scaling.long_factor;
  }
  return json;
}

}  // namespace

RopeConfig parse_rope(const ConfigKeys& keys, int64_t max_position, int64_t head_dim,
                      double default_theta) {
  RopeConfig config;
  config.theta = keys.number("rope_theta", kMinTheta, kMaxTheta, default_theta);
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
    const RopeConfig found{theta, parse_scaling(keys, rope, max_position, head_dim, theta)};
    if (other && *other != found) {
      keys.refuse(ErrorCode::kInvalid, name, "what rope_scaling says; keep one of the two");
    }
    other = found;
  }
  return other.value_or(config);
}

void prefer_given_rope(const Json& given, Json& json) {
  const auto parameters = json.find("rope_parameters");
  if (parameters == json.end() || !parameters->is_object()) return;
  const bool gives_theta = given.contains("rope_theta");
  if (given.contains("rope_parameters")) {
    if (!given.contains("rope_scaling")) json.erase("rope_scaling");
    if (!gives_theta && parameters->contains("rope_theta")) json.erase("rope_theta");
  } else if (given.contains("rope_scaling")) {
    if (!gives_theta && parameters->contains("rope_theta")) {
      json["rope_theta"] = Json(parameters->at("rope_theta"));
    }
    json.erase("rope_parameters");
  } else if (gives_theta) {
    (*parameters)["rope_theta"] = Json(json.at("rope_theta"));
  }
}

void write_rope(const RopeConfig& rope, Json& json) {
  json["rope_theta"] = rope.theta;
  json["rope_scaling"] = rope_scaling_json(rope.scaling);
  if (rope.scaling.original_outside) {
    json[kOriginal] = rope.scaling.original_max_position_embeddings;
  }
}

}  // namespace skein
