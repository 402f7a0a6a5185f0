// The main function of test programs.
#include <gtest/gtest.h>

#include "tests/test_home.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();
  const skein::TestHome home;
  return RUN_ALL_TESTS();
}
