#include "skein/compile/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skein {
namespace {

using testing::HasSubstr;

ParallelLayout layout_of(int64_t dp, int64_t cp, int64_t tp, int64_t zero) {
  ParallelLayout layout;
  layout.mesh = Mesh::standard(1, dp, cp, tp);
  layout.reduction_width = dp;
  layout.zero = zero;
  return layout;
}

TEST(IdleZero, IsToldWhereLessIsSplitThanWasAskedFor) {
  Config config;
  config.batch.global_sequences = 8;
  config.batch.micro_sequences = 1;
  for (const int64_t zero : {2, 3}) {
    EXPECT_THAT(idle_zero(config, layout_of(1, 1, 2, zero)),
                HasSubstr(fmt::format("parallel.zero = {} splits nothing", zero)));
  }
  EXPECT_THAT(idle_zero(config, layout_of(1, 2, 1, 2)), HasSubstr("a rank has 8 micro-batches"));
  EXPECT_THAT(idle_zero(config, layout_of(2, 1, 1, 2)), HasSubstr("a rank has 4 micro-batches"));
  EXPECT_THAT(idle_zero(config, layout_of(2, 1, 1, 3)),
              HasSubstr("3 leaves gradients whole: a rank has 4 micro-batches"));
  for (const int64_t zero : {0, 1}) EXPECT_EQ(idle_zero(config, layout_of(1, 1, 1, zero)), "");
  config.batch.micro_sequences = 4;
  EXPECT_EQ(idle_zero(config, layout_of(2, 2, 1, 2)), "");
}

}  // namespace
}  // namespace skein
