// On CPUs every instruction set with fused multiply-adds gives the same bits.
#include "tests/ops/paged_attention_reference.h"

namespace skein {
namespace {

using namespace op_test;         // NOLINT(google-build-using-namespace)
using namespace op_test::paged;  // NOLINT(google-build-using-namespace)

bool has_fused_multiply_add([[maybe_unused]] int64_t target) {
#if HWY_ARCH_X86
  return target <= HWY_AVX2;  // lower numbers are better instruction sets
#else
  return true;
#endif
}

TEST(PagedAttentionCpu, EveryInstructionSetHasTheSameBits) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const auto& [heads, kv_heads, head_dim] :
         std::vector<std::array<int64_t, 3>>{{8, 1, 64}, {3, 3, 80}, {4, 2, 20}}) {
      Config config = Config::of(dtype, heads, kv_heads, head_dim, 16);
      config.draw_pages(2, 300, 1);
      std::vector<Token> tokens = {{0, 299}, {0, 17}};
      for (int64_t p = 100; p < 221; ++p) tokens.push_back({1, p});
      const OpCase test = case_of(config, inputs_of(config, tokens));
      const BuiltCase built = build(test, 3);
      const ValueId o = built.graph.nodes()[0].outputs[0];
      const std::vector<double> want = GraphRun(built.graph, built.inputs, {}).read(o);
      for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
        if (!has_fused_multiply_add(target)) continue;
        const GraphRun run(built.graph, built.inputs, {.simd_target = target});
        EXPECT_EQ(run.read(o), want) << hwy::TargetName(target) << ", heads of " << head_dim;
      }
    }
  }
}

}  // namespace
}  // namespace skein
