#include "skein/base/machine/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/error_of.h"

namespace skein {
namespace {

constexpr const char* kVariable = "SKEIN_ENVIRONMENT_TEST";

TEST(Environment, ASwitchIsOnUnlessItIsSetToOff) {
  ::unsetenv(kVariable);
  EXPECT_TRUE(is_switched_on(kVariable));
  for (const char* on : {"", "on"}) {
    ::setenv(kVariable, on, 1);
    EXPECT_TRUE(is_switched_on(kVariable)) << on;
  }
  ::setenv(kVariable, "off", 1);
  EXPECT_FALSE(is_switched_on(kVariable));
}

TEST(Environment, OtherWordsOfASwitchAreRefused) {
  for (const char* wrong : {"OFF", "0", "no"}) {
    ::setenv(kVariable, wrong, 1);
    EXPECT_THAT(test::error_of([] { is_switched_on(kVariable); }),
                testing::HasSubstr("SKEIN_ENVIRONMENT_TEST=" + std::string(wrong)));
  }
  ::unsetenv(kVariable);
}

}  // namespace
}  // namespace skein
