// A vendor's compiler, asked for machines that are not here: what it says of a program's memory,
// work and collectives. Nothing is run.
//
// Units   bytes on each device; seconds. A replica is a rank
// Errors  kUsage: a target that the compiler does not know, or with fewer devices than replicas.
//         kInternal, with the compiler's own words: all else
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace skein {

struct CompiledMemory {
  int64_t argument_bytes = 0, result_bytes = 0;
  int64_t donated_bytes = 0;    // results in the memory of arguments
  int64_t temporary_bytes = 0;  // arrays that live while the program runs
  int64_t code_bytes = 0;       // 0 where it does not say
};

// An exchange between replicas, as the compiler left it.
struct CompiledCollective {
  std::string kind;   // "all-gather", as XLA names it
  int64_t ranks = 1;  // of a group
  int64_t bytes = 0;  // of its result
  // By each rank: of an all-gather (ranks - 1) / ranks of the result, for example.
  int64_t sent_bytes() const;
};

struct AotProgram {
  CompiledMemory memory;
  // Where the compiler says so. It counts what is inside a loop once.
  std::optional<double> flops, bytes_accessed, optimal_seconds;
  std::optional<std::vector<CompiledCollective>> collectives;
  double compile_seconds = 0;
};

struct AotTarget {
  std::string plugin;  // the path of the compiler's library
  std::string name;    // "h200x8", "v5p:4x4x4", "cpu"
  std::string level;   // device.optimization_level
};

class AotCompiler {
 public:
  virtual ~AotCompiler() = default;
  virtual std::string platform() const = 0;  // one line
  // `name` is for messages; `num_replicas` devices run the text at once.
  virtual AotProgram compile(const std::string& name, const std::string& text,
                             int64_t num_replicas) = 0;
};

}  // namespace skein
