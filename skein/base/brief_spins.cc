#include "skein/base/brief_spins.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>

namespace skein {

void spin_briefly(char** argv) {
  constexpr const char* kSpins = "10000";
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  // What runs then can no longer start itself twice.
  if (::setenv("GOMP_SPINCOUNT", kSpins, 1) != 0) return;
  if (::getauxval(AT_BASE) == 0) return;  // `ld.so skein train`: the program is the loader
  ::execv("/proc/self/exe", argv);
}

}  // namespace skein
