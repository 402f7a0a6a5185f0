#include "skein/base/machine/crash_signals.h"

#include <csignal>
#include <initializer_list>

namespace skein {

void take_back_crash_signals() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(number, SIG_DFL);
#endif
}

void outlive_file_size_limit() { std::signal(SIGXFSZ, SIG_IGN); }

}  // namespace skein
