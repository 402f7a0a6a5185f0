#include "skein/base/log.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace skein
