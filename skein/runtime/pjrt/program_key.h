// What makes a compiled program the one that is needed: everything that a compiler reads.
//
// Key      a hash over the text, the number of replicas, the options, the plugin's platform,
//          version, interface and kind of device, its library's bytes (a version may be "cpu"), the
//          kind of processor for a platform that compiles for this one, and the variables of the
//          environment that compilers read
#pragma once

#include <cstdint>
#include <string>

#include "skein/runtime/pjrt/pjrt_client.h"

namespace skein {

class ProgramKeys {
 public:
  // Reads the library: 0.1 s where the system has it in memory.
  ProgramKeys(const PjrtClient& client, const std::string& level);

  // 32 hexadecimal digits.
  std::string key(const std::string& text, int64_t num_replicas) const;

 private:
  std::string level_;
  std::string compiler_;  // all that does not depend on the program
};

}  // namespace skein
