// Whether anybody still listens where another machine's supervisor did: its kernel refuses the
// connection at once when the process is gone, however it ended. A machine that is gone, or does
// nothing, says nothing: that is what silence is for (supervise/membership.h).
//
// Cost     a connection attempt for each address and second, without waiting
// Threads  one
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/base/machine/clock.h"

namespace skein {

class HostProbe {
 public:
  // Keeps asking at these addresses ("10.0.0.7:41234"), and no others; the ones that refuse now.
  std::vector<std::string> refused(const std::vector<std::string>& addresses);

 private:
  struct Attempt {
    FileDescriptor socket;  // none: it has ended, and another one is due
    Clock::time_point next;
  };
  std::map<std::string, Attempt> attempts_;
};

}  // namespace skein
