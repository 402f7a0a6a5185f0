#include "skein/base/text/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "skein/base/files/file.h"

namespace skein {
namespace {

TEST(Log, AFileOnAFullDiskIsToldOfOnce) {
  testing::internal::CaptureStderr();
  log::start("/dev/full");
  for (int i = 0; i < 3; ++i) {
    log::info("line {}", i);
    log::info_to_file("a line for the file");
    log::error_to_file("an error for the file");
  }
  log::start();
  const std::string told = testing::internal::GetCapturedStderr();
  const size_t at = told.find("/dev/full lacks lines from here on");
  EXPECT_NE(at, std::string::npos) << told;
  EXPECT_NE(told.find("No space left on device"), std::string::npos) << told;
  EXPECT_EQ(told.find("lacks lines", at + 30), std::string::npos) << told;
  EXPECT_EQ(told.find("LOG ERROR"), std::string::npos) << told;
  EXPECT_NE(told.find("line 2"), std::string::npos) << told;
}

// A name from outside can neither begin a line of its own nor move the cursor, in the file as on
// the terminal.
TEST(Log, NamesFromOutsideAreShownAndNotObeyed) {
  const std::string file = testing::TempDir() + "/log_test_names.log";
  std::remove(file.c_str());
  const std::string name = "a\nE 12:00:00 forged \x1b]0;title\a \u009b31m \x7f \u202e \x9b";
  const std::string shown =
      "a\\nE 12:00:00 forged \\x1b]0;title\\x07 \\u009b31m \\x7f \\u202e \\x9b";
  testing::internal::CaptureStderr();
  log::start(file);
  log::warn("saved {}", name);
  log::info_to_file("kept " + name);
  log::error_to_file("lost " + name);
  log::debug_to_file("seen " + name);
  log::start();
  log::append_error(file, "of a rank " + name);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("saved " + shown + "\n"), std::string::npos) << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  const std::string written = read_file(file);
  for (const char* before : {"saved ", "kept ", "lost ", "seen ", "of a rank "}) {
    EXPECT_NE(written.find(before + shown + "\n"), std::string::npos) << written;
  }
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 5) << written;
}

TEST(Log, NoColorIsHonoured) {
  ::unsetenv("NO_COLOR");
  EXPECT_TRUE(log::may_colour());
  ::setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(log::may_colour());
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(log::may_colour());
  ::unsetenv("NO_COLOR");
}

TEST(Log, DebugLinesAreInTheFileAlone) {
  const std::string file = testing::TempDir() + "/log_test_debug.log";
  std::remove(file.c_str());
  testing::internal::CaptureStderr();
  log::start(file);
  log::debug_to_file("arenas {}");
  log::info("a line for people");
  log::start();
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(told.find("arenas"), std::string::npos) << told;
  const std::string written = read_file(file);
  EXPECT_TRUE(written.starts_with("D ")) << written;
  EXPECT_NE(written.find(" arenas {}\nI "), std::string::npos) << written;
  // Of a process whose standard error is its log.
  testing::internal::CaptureStderr();
  log::debug_to_file("arenas {}");
  const std::string redirected = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(redirected.starts_with("D ")) << redirected;
}

}  // namespace
}  // namespace skein
