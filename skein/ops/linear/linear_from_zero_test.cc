// Products that begin gradient sums, whatever lay there.
#include <cmath>
#include <limits>

#include "skein/ops/linear/linear.h"
#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

// dy_1..dy_n [, w_1..w_n], x, g_1..g_n
OpCase make_case(const OpDef& op, DType dtype, int64_t tokens, int64_t in,
                 const std::vector<int64_t>& out, double sum) {
  OpCase test{
      .op = &op, .attrs = {{"parts", static_cast<int64_t>(out.size())}}, .phase = Phase::kBackward};
  uint32_t stream = 1;
  for (const int64_t size : out) {
    test.inputs.push_back(random_tensor(dtype, {tokens, size}, stream++));
  }
  for (const int64_t size : out) {
    if (&op != &kLinearDxDw) break;
    test.inputs.push_back(random_tensor(dtype, {size, in}, stream++, 1.0, Role::kParameter));
  }
  test.inputs.push_back(random_tensor(dtype, {tokens, in}, stream++));
  for (const int64_t size : out) {
    test.inputs.push_back(make_tensor(
        DType::kF32, {size, in}, [&](int64_t) { return sum; }, Role::kGradient));
  }
  return test;
}

Outputs run_case(const OpCase& test, int num_outputs, int threads) {
  const BuiltCase built = build(test, num_outputs);
  const GraphRun run(built.graph, built.inputs, {.num_threads = threads});
  Outputs outputs;
  for (const ValueId id : built.graph.nodes()[0].outputs) outputs.push_back(run.read(id));
  return outputs;
}

// 5,000 tokens are cut into pieces, of which only the first begins the sums.
TEST(LinearFromZero, HasTheBitsOfSumsThatBeganAtZero) {
  const std::vector<int64_t> out = {24, 7};
  for (const OpDef* op : {&kLinearDw, &kLinearDxDw}) {
    const int num_outputs = op == &kLinearDw ? 2 : 3;
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const int64_t tokens : {1, 33, 5000}) {
        const Outputs added = run_case(make_case(*op, dtype, tokens, 40, out, 0.0), num_outputs, 1);
        OpCase begun =
            make_case(*op, dtype, tokens, 40, out, std::numeric_limits<double>::quiet_NaN());
        begun.attrs.set(std::string(kFromZero), true);
        EXPECT_EQ(run_case(begun, num_outputs, 1), added) << op->name << " of " << tokens;
        EXPECT_EQ(run_case(begun, num_outputs, 3), added) << op->name << " of " << tokens;
        begun.attrs.set(std::string(kFromZero), false);
        EXPECT_TRUE(std::isnan(run_case(begun, num_outputs, 1).back().front()));
      }
    }
  }
}

TEST(LinearFromZero, ReadsNoSums) {
  for (const OpDef* op : {&kLinearDw, &kLinearDxDw}) {
    OpCase test = make_case(*op, DType::kBF16, 8, 40, {24}, 0.0);
    const int num_outputs = op == &kLinearDw ? 1 : 2;
    const auto bytes_read = [&] {
      const BuiltCase built = build(test, num_outputs);
      return op->cost(built.graph.call(built.graph.nodes()[0])).bytes_read;
    };
    const int64_t adding = bytes_read();
    test.attrs.set(std::string(kFromZero), true);
    EXPECT_EQ(adding - bytes_read(), 24 * 40 * 4);
  }
}

}  // namespace
}  // namespace skein
