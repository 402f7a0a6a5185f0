#include "skein/ops/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(Optimizers, AreFoundByName) {
  for (const Optimizer* optimizer : all_optimizers()) {
    EXPECT_EQ(&find_optimizer(optimizer->name), optimizer);
    EXPECT_EQ(optimizer_of(*optimizer->op), optimizer);
  }
  EXPECT_THAT(error_of([] { find_optimizer("sgd"); }), HasSubstr("is 'sgd': expected adamw"));
}

TEST(Optimizers, TensorsOfTheirStateHaveNamesThatAreReadAsWritten) {
  std::vector<StateRow> rows = {kMasterRow};
  for (const Optimizer* optimizer : all_optimizers()) {
    rows.insert(rows.end(), optimizer->state.begin(), optimizer->state.end());
  }
  for (const StateRow& row : rows) {
    const auto name = parse_state_name(state_name(row, "layers.0.mlp.up_proj.weight"));
    ASSERT_TRUE(name) << row.name;
    EXPECT_EQ(name->row->name, row.name);
    EXPECT_EQ(name->parameter, "layers.0.mlp.up_proj.weight");
  }
}

TEST(Optimizers, OtherTensorsAreNotTheirs) {
  for (const char* name : {"model.norm.weight", "exp_avg", "exp_avg.", "exp_average.x", "master"}) {
    EXPECT_FALSE(parse_state_name(name)) << name;
  }
}

}  // namespace
}  // namespace skein
