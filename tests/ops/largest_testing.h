// What an op finds with the attr `largest` (skein/ops/largest.h): the largest magnitude of all that
// it stores in those outputs, as it is rounded and as fp8_largest finds it, NaNs left out. All
// other outputs are those of before.
#pragma once

#include "skein/ops/linear/fp8_operands.h"
#include "tests/ops/op_harness.h"

namespace skein::op_test {

inline void check_largest(OpCase test, int num_outputs) {
  const BuiltCase plain = build(test, num_outputs);
  test.attrs.set("largest", true);
  BuiltCase asked = build(test, num_outputs + 1);
  const std::vector<ValueId> outputs = asked.graph.nodes()[0].outputs;
  const ValueId found = asked.graph.add1(
      kFp8Largest, {outputs.begin(), outputs.begin() + test.op->largest_outputs}, {}, "found");
  for (const int64_t padding : {0, 3}) {
    const GraphRun plain_run(plain.graph, plain.inputs, {.row_padding = padding});
    const GraphRun run(asked.graph, asked.inputs, {.row_padding = padding});
    double largest = 0;
    for (int i = 0; i < num_outputs; ++i) {
      const auto want = plain_run.read(plain.graph.nodes()[0].outputs[i]);
      const auto got = run.read(outputs[i]);
      for (size_t k = 0; k < want.size(); ++k) {
        EXPECT_TRUE(got[k] == want[k] || (std::isnan(got[k]) && std::isnan(want[k])));
        if (i < test.op->largest_outputs && !std::isnan(want[k])) {
          largest = std::max(largest, std::abs(want[k]));
        }
      }
    }
    EXPECT_GT(largest, 0);
    EXPECT_EQ(run.read(outputs[num_outputs]), std::vector<double>{largest});
    EXPECT_EQ(run.read(found), std::vector<double>{largest});
  }
}

}  // namespace skein::op_test
