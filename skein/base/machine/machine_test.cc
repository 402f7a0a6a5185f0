#include "skein/base/machine/machine.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace skein {
namespace {

TEST(Machine, IsNamedByTheEnvironmentFirst) {
  ::setenv("SKEIN_NODE", "rack 3/node-7.a", 1);
  EXPECT_EQ(node_name(), "rack_3_node-7.a");
  ::setenv("SKEIN_NODE", std::string(500, 'x').c_str(), 1);
  EXPECT_EQ(node_name().size(), 128u);
  ::unsetenv("SKEIN_NODE");
  EXPECT_FALSE(node_name().empty());
}

TEST(Machine, ProcessesBeginBetweenTheBootAndNow) {
  EXPECT_GT(process_start_seconds(), 0);
  EXPECT_LE(process_start_seconds(), boot_seconds());
  EXPECT_LT(boot_seconds() - process_start_seconds(), 3600);
  EXPECT_EQ(boot_name().size(), 8u);
}

TEST(Machine, ItsClockAscends) {
  const double before = boot_seconds();
  EXPECT_GE(boot_seconds(), before);
}

}  // namespace
}  // namespace skein
