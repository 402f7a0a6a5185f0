// Sliding-window attention in config.json. Skein has only full attention, which is the same
// function for texts that are not longer than the window. Whoever takes a text refuses longer ones.
//
// Formula  with a window W the token at i attends to max(0, i - W + 1) .. i: to all before it where
//          the text has at most W tokens
// Reads    sliding_window (null or 0: none), and where a family has them use_sliding_window,
//          max_window_layers and layer_types; writes them back as they were read
// Errors   Error{kInvalid} for values that contradict each other, kUnsupported for other types of
//          layers
// Source   transformers 5.24, modeling_mistral.py, configuration_qwen2.py, masking_utils.py
#pragma once

#include <cstdint>
#include <optional>

#include "skein/base/text/json.h"

namespace skein {

class ConfigKeys;

struct AttentionWindow {
  std::optional<int64_t> tokens;  // the shortest of the layers' windows; none: full attention
  Json keys = Json::object();     // as config.json has them
};

// All layers have the window of sliding_window, which is `absent` where there is no such key.
AttentionWindow parse_window(const ConfigKeys& keys, std::optional<int64_t> absent = std::nullopt);

// Of Qwen: only with use_sliding_window, and in the layers that layer_types names, or in those from
// max_window_layers on.
AttentionWindow parse_layer_windows(const ConfigKeys& keys, int64_t num_layers);

}  // namespace skein
