// What a compiler of the XLA family is asked for with a program: a CompileOptionsProto.
//
// Level    "0" to "3" is xla_backend_optimization_level. Any other text is a list of options with
//          `,` between, "xla_llvm_disable_expensive_passes=true", as XLA_FLAGS has them without
//          dashes; one that a compiler does not know is its error
// Errors   kUsage for a level of another form
// Source   github.com/openxla/xla, xla/pjrt/proto/compile_options.proto
#pragma once

#include <cstdint>
#include <string>

namespace skein {

// Serialized. `num_replicas` times `num_partitions` devices run the program at once.
std::string compile_options(int64_t num_replicas, const std::string& level,
                            int64_t num_partitions = 1);

}  // namespace skein
