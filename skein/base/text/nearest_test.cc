#include "skein/base/text/nearest.h"

#include <gtest/gtest.h>

#include <string>

namespace skein {
namespace {

TEST(NearestName, CountsEdits) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("recieve", "receive"), 1);
  EXPECT_EQ(edit_distance("same", "same"), 0);
  const std::string_view names[] = {"steps", "seed", "resume"};
  EXPECT_EQ(nearest_name("step", names), "steps");
  EXPECT_EQ(nearest_name("sede", names), "seed");
  EXPECT_EQ(nearest_name("entirely_else", names), "");
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'x'), names), "");
}

}  // namespace
}  // namespace skein
