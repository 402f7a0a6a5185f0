#include "skein/ir/gradient_name.h"

#include <gtest/gtest.h>

#include "skein/base/error.h"

namespace skein {
namespace {

TEST(GradientName, IsReadAsItIsWritten) {
  EXPECT_EQ(gradient_name("layers.0.mlp.up_proj.weight"), "grad.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(gradient_name("embed_tokens.weight", "head"), "grad.embed_tokens.weight/head");
  const std::string name = gradient_name("embed_tokens.weight", "head");
  EXPECT_EQ(parse_gradient_name(name).parameter, "embed_tokens.weight");
  EXPECT_EQ(parse_gradient_name(name).scope, "head");
  EXPECT_EQ(parse_gradient_name("grad.norm.weight").scope, "");
}

TEST(GradientName, OfAnotherValueIsRefused) {
  EXPECT_THROW(parse_gradient_name("exp_avg.norm.weight"), Error);
  EXPECT_THROW(parse_gradient_name("gra"), Error);
}

}  // namespace
}  // namespace skein
