#include "skein/base/crash_signals.h"

#include <csignal>

namespace skein {

void take_back_crash_signals() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(number, SIG_DFL);
#endif
}

}  // namespace skein
