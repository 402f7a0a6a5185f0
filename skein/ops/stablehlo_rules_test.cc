// What every op owes to backends that compile: a rule.
#include <gtest/gtest.h>

#include "skein/ops/ops.h"

namespace skein {
namespace {

TEST(StablehloRules, EveryOpHasOne) {
  const stablehlo::RuleTable rules = stablehlo_rules();
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(rules.contains(op->name)) << op->name << " has no StableHLO rule";
  }
  EXPECT_EQ(rules.size(), all_ops().size()) << "a rule of an op that does not exist";
}

}  // namespace
}  // namespace skein
