// Names of tensors as other programs save them, and what to say of tensors that do not fit.
//
// Reads    what wrappers put before or into all names: `_orig_mod.` (torch.compile), `module.`
//          (data parallel), `base_model.model.` (PEFT, after merging), …; and names without
//          `model.`, as the decoder alone (LlamaModel) has them
// Errors   Error{kInvalid | kUnsupported} that names folder and tensor, and what would help
// Source   transformers, peft, torch: state_dict() of what they wrap
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "skein/model/decoder.h"

namespace skein {

struct SourceNames {
  std::map<std::string, std::string> renamed;  // of the file -> as Skein has them; what differs
  std::string note;                            // a line for people; empty where nothing differs
};

// `names`: of all tensors.
SourceNames source_names(const std::vector<std::string>& names);

// Buffers of older exports, which follow from the configuration or do nothing.
bool is_buffer(std::string_view name, std::string_view safetensors_dtype);

// Why tensors are missing, or which have no place: of another family, quantized, an adapter, a
// missing head. Not both lists are empty. `folder` names the source; `has_config`:
// its config.json can be changed.
[[noreturn]] void refuse_tensors(const std::string& folder, const DecoderConfig& model,
                                 const std::vector<std::string>& missing,
                                 const std::vector<std::string>& unknown, bool has_config);

}  // namespace skein
