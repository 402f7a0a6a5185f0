#include "skein/ops/clip_scale/clip_scale.h"

#include "skein/base/numbers/exact_sum.h"
#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

OpCase make_case(double norm_sum, double tokens, double max_norm, double scale, double norm) {
  std::array<double, exact_sum::kBins> bins{};
  exact_sum::add(bins.data(), norm_sum);
  return {
      .op = &kClipScale,
      .attrs = {{"max_norm", max_norm}},
      .inputs = {make_tensor(DType::kF64, {exact_sum::kBins}, [&](int64_t i) { return bins[i]; }),
                 make_tensor(DType::kI32, {1}, [=](int64_t) { return tokens; })},
      .reference =
          [=](const Tensors&) {
            return Outputs{{scale}, {norm}};
          },
      .tolerance = 1e-7,
      .phase = Phase::kUpdate};
}

TEST(ClipScale, MeetsTorch) {
  check_op(make_case(400.0, 10, 1.0, 1.0 / (2.0 + 1e-6) / 10, 2.0));
  check_op(make_case(25.0, 10, 1.0, 0.1, 0.5));  // below the limit: only the mean
  check_op(make_case(1e20, 10, 0.0, 0.1, 1e9));  // no clipping
  check_op(make_case(0.0, 0, 1.0, 1.0, 0.0));    // a batch without labels
}

TEST(ClipScale, ReportsANormThatIsNotFinite) {
  const BuiltCase built = build(make_case(NAN, 4, 1.0, 0, 0), 2);
  const GraphRun run(built.graph, built.inputs, {});
  EXPECT_TRUE(std::isnan(run.read(built.graph.nodes()[0].outputs[1])[0]));
  EXPECT_THROW(build(make_case(1, 4, -1.0, 0, 0), 2), Error);
}

}  // namespace
}  // namespace skein
