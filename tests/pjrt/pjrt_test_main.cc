// Runs the op tests on StableHLO rules, and the tests of this folder. Without a plugin all are
// skipped, which ctest sees by what is printed.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/ops/test_device.h"
#include "tests/pjrt/op_kernels.h"
#include "tests/pjrt/plugin.h"
#include "tests/test_home.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();
  const skein::TestHome home;
  const std::string plugin = skein::pjrt_test::plugin_path(SKEIN_SOURCE_DIR);
  if (plugin.empty()) {
    std::printf("[  SKIPPED ] no PJRT plugin: scripts/test_tools.sh unpacks one\n");
    return 0;
  }
  // Destroyed after the executables that kernels keep.
  static const skein::PjrtClient client({.plugin = plugin, .num_devices = 4});
  skein::op_test::TestDevice& device = skein::op_test::test_device();
  device.kernels = skein::pjrt_test::op_kernels(client);
  device.is_cpu = false;
  device.is_slow = device.compiles = true;
  return RUN_ALL_TESTS();
}
