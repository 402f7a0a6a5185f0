#include "skein/base/machine/short_spins.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/machine/program_path.h"

namespace skein {

void restart_with_short_spins(char** argv) {
  constexpr const char* kSpins = "10000";
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  // The restarted program finds the variable set, and does not restart again.
  if (::setenv("GOMP_SPINCOUNT", kSpins, 1) != 0) return;
  try {
    std::vector<std::string> words = words_to_start_again(argv[0]);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    for (char** own = argv + 1; *own != nullptr; ++own) arguments.push_back(*own);
    arguments.push_back(nullptr);
    ::execv(program_to_start().c_str(), arguments.data());
  } catch (const Error&) {  // the program's file is gone: continue without short spins
  }
}

}  // namespace skein
