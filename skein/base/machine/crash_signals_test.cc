#include "skein/base/machine/crash_signals.h"

#include <gtest/gtest.h>

#include <csignal>

namespace skein {
namespace {

TEST(CrashSignals, EndTheProcessWhateverALibrarySetUp) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer reports crashes";
#endif
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    const auto before = std::signal(number, [](int) {});
    take_back_crash_signals();
    EXPECT_EQ(std::signal(number, before), SIG_DFL) << number;
  }
}

TEST(CrashSignals, WhatIsTooLargeForTheLimitIsAnErrorOfTheWrite) {
  const auto before = std::signal(SIGXFSZ, SIG_DFL);
  outlive_file_size_limit();
  EXPECT_EQ(std::signal(SIGXFSZ, before), SIG_IGN);
}

}  // namespace
}  // namespace skein
