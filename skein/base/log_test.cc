#include "skein/base/log.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "skein/base/file.h"

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
