#include "skein/model/window.h"

#include <fmt/format.h>

#include <algorithm>

#include "skein/model/config_keys.h"

namespace skein {
namespace {

constexpr const char* kFull = "full_attention";
constexpr const char* kSliding = "sliding_attention";
constexpr int64_t kDefaultWindow = 4096;      // of transformers' Qwen2Config and Qwen3Config
constexpr int64_t kDefaultWindowLayers = 28;  // likewise

std::optional<int64_t> read_window(const ConfigKeys& keys, std::optional<int64_t> absent) {
  if (!keys.has("sliding_window")) return absent;
  const int64_t window = keys.integer("sliding_window", 0, kMaxPosition, 0);
  return window == 0 ? std::nullopt : std::optional(window);
}

Json optional_json(const std::optional<int64_t>& value) { return value ? Json(*value) : Json(); }

// Whether layer_types has a layer with a window.
bool has_sliding(const ConfigKeys& keys) {
  const Json* types = keys.find("layer_types");
  if (types == nullptr) return false;
  const bool known =
      types->is_array() && std::all_of(types->begin(), types->end(), [](const Json& type) {
        return type == kFull || type == kSliding;
      });
  if (!known) {
    keys.refuse(ErrorCode::kUnsupported, "layer_types",
                fmt::format("\"{}\" or \"{}\" of every layer", kFull, kSliding));
  }
  return std::find(types->begin(), types->end(), kSliding) != types->end();
}

}  // namespace

AttentionWindow parse_window(const ConfigKeys& keys, std::optional<int64_t> absent) {
  AttentionWindow window;
  window.tokens = read_window(keys, absent);
  if (has_sliding(keys) && !window.tokens && !keys.is_zero("sliding_window")) {
    keys.refuse(ErrorCode::kInvalid, "layer_types",
                fmt::format("\"{}\" of every layer, or a sliding_window", kFull));
  }
  if (window.tokens) window.keys["sliding_window"] = *window.tokens;
  return window;
}

AttentionWindow parse_layer_windows(const ConfigKeys& keys, int64_t num_layers) {
  AttentionWindow window;
  const bool uses = keys.boolean("use_sliding_window", false);
  const bool has_types = keys.find("layer_types") != nullptr;
  const std::optional<int64_t> tokens = read_window(keys, kDefaultWindow);
  const int64_t first = keys.integer("max_window_layers", 0, kMaxSize, kDefaultWindowLayers);
  const bool slides = has_types ? has_sliding(keys) : uses && first < num_layers;

  window.keys["use_sliding_window"] = uses;
  if (keys.has("sliding_window") || uses) window.keys["sliding_window"] = optional_json(tokens);
  if (keys.find("max_window_layers") != nullptr) window.keys["max_window_layers"] = first;
  if (has_types) {
    const Json& types = *keys.find("layer_types");
    const bool turned_off = keys.is_zero("sliding_window");
    if (slides && !turned_off && static_cast<int64_t>(types.size()) != num_layers) {
      keys.refuse(ErrorCode::kInvalid, "layer_types",
                  fmt::format("one for each of the {} layers", num_layers));
    }
    if (slides && !turned_off && !(uses && tokens)) {
      keys.refuse(ErrorCode::kInvalid, "layer_types",
                  fmt::format("\"{}\" of every layer, or use_sliding_window true with a "
                              "sliding_window",
                              kFull));
    }
    window.keys["layer_types"] =
        slides && !turned_off ? types : Json(static_cast<size_t>(num_layers), kFull);
  }
  if (slides && uses) window.tokens = tokens;
  return window;
}

}  // namespace skein
