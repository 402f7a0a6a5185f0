// The collectives of a compiled program, read out of a serialized HloModuleProto.
//
// Errors  Error{kInvalid} for bytes that are no such message
// Source  github.com/openxla/xla: xla/service/hlo.proto, xla/xla_data.proto
#pragma once

#include <string_view>
#include <vector>

#include "skein/runtime/aot_compiler.h"

namespace skein {

// Of all computations; those inside a loop count once. Of an asynchronous one its start counts.
// `format`: "hlo", or "hlo_with_config" of a message around it.
std::vector<CompiledCollective> hlo_collectives(std::string_view program, std::string_view format);

}  // namespace skein
