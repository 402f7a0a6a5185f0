// Names of the Hugging Face Hub, OWNER/NAME, where a path of this machine is expected.
#pragma once

#include <string>
#include <string_view>

namespace skein {

// "; if this is a … of the Hugging Face Hub, `hf download …` brings it" for a `path` that may be
// such a name: two parts of letters, digits, '-', '_' and '.', and no file or folder of the first
// part's name here. Else "". `kind`: "model" or "dataset".
std::string hub_advice(std::string_view path, std::string_view kind = "model");

}  // namespace skein
