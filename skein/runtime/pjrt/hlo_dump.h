// A StableHLO program in XLA's own form, as a plugin of XLA for CPUs makes it of the text before
// anything else: XLA can write that form into a folder. The plugin is asked for two partitions
// without the pass that makes them, so that it refuses then, instead of compiling for the CPU.
//
// Errors  Error{kUnsupported}: the plugin wrote nothing (with what it said). Others: those of
//         PjrtClient and portable_hlo
#pragma once

#include <string>

#include "skein/stablehlo/hlo_proto.h"

namespace skein {

// `plugin`: the path of the library. `num_replicas`: those of the text.
stablehlo::HloModule dump_hlo(const std::string& plugin, const std::string& text,
                              int64_t num_replicas);

}  // namespace skein
