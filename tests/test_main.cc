// The main function of test programs.
#include <gtest/gtest.h>

#include "tests/places.h"
#include "tests/test_home.h"

const char* const skein::kSourceFolder = SKEIN_SOURCE_DIR;
const char* const skein::kProgram = SKEIN_BINARY;

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();
  const skein::TestHome home;
  return RUN_ALL_TESTS();
}
