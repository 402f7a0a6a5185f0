#include "skein/cli/inputs/stop_line.h"

#include <unistd.h>

#include <cstring>

namespace skein {
namespace {

const char* g_line = nullptr;

void say_and_end(int signal) {
  if (::write(STDERR_FILENO, g_line, std::strlen(g_line)) < 0) {
    // nobody listens
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

StopLine::StopLine(const char* line) {
  g_line = line;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    former_[i] = std::signal(kSignals[i], say_and_end);
    if (former_[i] == SIG_IGN) std::signal(kSignals[i], SIG_IGN);  // nohup
  }
}

StopLine::~StopLine() {
  for (size_t i = 0; i < kSignals.size(); ++i) std::signal(kSignals[i], former_[i]);
}

}  // namespace skein
