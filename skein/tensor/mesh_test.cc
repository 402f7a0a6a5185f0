#include "skein/tensor/mesh.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(Mesh, RanksAlongAnAxisDifferOnItAlone) {
  const Mesh mesh = Mesh::standard(2, 2, 1, 3);
  EXPECT_EQ(mesh.ranks_along("tp", 7), (std::vector<int64_t>{6, 7, 8}));
  EXPECT_EQ(mesh.ranks_along("dp", 7), (std::vector<int64_t>{7, 10}));
  EXPECT_EQ(mesh.ranks_along("pp", 7), (std::vector<int64_t>{1, 7}));
  EXPECT_EQ(mesh.ranks_along("kv", 7), (std::vector<int64_t>{7}));
}

}  // namespace
}  // namespace skein
