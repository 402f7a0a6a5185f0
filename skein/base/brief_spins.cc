#include "skein/base/brief_spins.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string>

namespace skein {

void spin_briefly(char** argv) {
  constexpr const char* kSpins = "10000";
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  // What runs then can no longer start itself twice.
  if (::setenv("GOMP_SPINCOUNT", kSpins, 1) != 0) return;
  if (::getauxval(AT_BASE) == 0) return;  // `ld.so skein train`: the program is the loader
  // Its path, not /proc/self/exe, by which the system would name the process.
  std::string path(PATH_MAX, '\0');
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0 || size == PATH_MAX) return;
  path.resize(static_cast<size_t>(size));
  ::execv(path.c_str(), argv);
}

}  // namespace skein
