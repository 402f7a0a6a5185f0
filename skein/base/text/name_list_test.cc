#include "skein/base/text/name_list.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(NameList, HasNoBlanksAroundNames) {
  EXPECT_EQ(names_of_list(" a, b c ,,\td"), (std::vector<std::string>{"a", "b c", "d"}));
  EXPECT_TRUE(names_of_list(" , ").empty());
  EXPECT_TRUE(names_of_list("").empty());
}

}  // namespace
}  // namespace skein
