// Attention's kernels for tiles on a unit that is emulated (tests/ops/emulated_tiles.h): what runs
// on AMX runs on every host. They are compiled for AVX-512, as those for AMX are, and for the
// instructions that every host has.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/attention/cpu/attention_tiles_cpu_test.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "skein/base/machine/prefetch.h"
#include "skein/ops/attention/cpu/attention_cpu.h"
#include "skein/ops/simd/cpu_kind.h"
#include "skein/ops/simd/simd-inl.h"
#include "tests/ops/attention_reference.h"
#include "tests/ops/emulated_tiles.h"

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_STATIC_TARGET
#define SKEIN_ATTENTION_UNIT test::EmulatedTiles
#if HWY_TARGET == HWY_AVX3
#define SKEIN_ATTENTION_BF16_DOT 1
#define SKEIN_ATTENTION_ATTRIBUTES HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16")
#else
#define SKEIN_ATTENTION_BF16_DOT 0
#define SKEIN_ATTENTION_ATTRIBUTES HWY_BEFORE_NAMESPACE();
#endif
#define SKEIN_ATTENTION_PANELS emulated_tiles
// clang-format off
#include "skein/ops/attention/cpu/attention_tile-inl.h"
#include "skein/ops/attention/cpu/attention_forward-inl.h"
#include "skein/ops/attention/cpu/attention_backward-inl.h"
// clang-format on
#undef SKEIN_ATTENTION_BF16_DOT
#undef SKEIN_ATTENTION_UNIT
#undef SKEIN_ATTENTION_ATTRIBUTES
#undef SKEIN_ATTENTION_PANELS
#endif

#if HWY_ONCE
namespace skein {
namespace {

using namespace op_test::attention;  // NOLINT(google-build-using-namespace)
using attention_cpu::Kernels;

// Null where this machine does not run them.
const Kernels* emulated_kernels(bool avx512) {
  if (!avx512) return &attention_cpu::HWY_NAMESPACE::emulated_tiles::kernels_of(DType::kBF16);
#if HWY_TARGETS & HWY_AVX3
  if (cpu_uses_bf16_dot()) {
    return &attention_cpu::N_AVX3::emulated_tiles::kernels_of(DType::kBF16);
  }
#endif
  return nullptr;
}

// While it lives, attention runs on its kernels.
class RunOn {
 public:
  explicit RunOn(const Kernels& kernels) {
    chosen_ = &kernels;
    for (const char* op : {"attention", "attention_backward"}) table_.at(op).prepare = prepare;
    hwy::SetSupportedTargetsForTest(HWY_STATIC_TARGET);  // another would run the same once more
  }
  ~RunOn() {
    table_ = cpu_kernels();
    hwy::SetSupportedTargetsForTest(0);
  }
  RunOn(const RunOn&) = delete;
  RunOn& operator=(const RunOn&) = delete;

 private:
  static std::shared_ptr<const void> prepare(const KernelCall&) {
    const attention_cpu::ChosenKernels state = {chosen_, omp_get_max_threads()};
    return std::make_shared<const attention_cpu::ChosenKernels>(state);
  }
  static inline const Kernels* chosen_ = nullptr;
  KernelTable& table_ = op_test::test_device().kernels;
};

// Strips of 16, blocks of 64 and groups of four blocks that are whole, and cut.
std::vector<Config> sizes() {
  std::vector<Config> all;
  for (const bool causal : {true, false}) {
    for (const int64_t head_dim : {7, 64, 80, 128}) {
      for (const int64_t length : {1, 17, 65, 127}) {
        all.push_back({.sequence_length = length,
                       .heads = 2,
                       .kv_heads = 1,
                       .head_dim = head_dim,
                       .causal = causal,
                       .boundaries = {length / 3, length / 2 + 1}});
      }
    }
    all.push_back({.sequence_length = 330,
                   .heads = 2,
                   .head_dim = 24,
                   .causal = causal,
                   .boundaries = {70, 129, 262}});
  }
  // Groups that are whole, at the widest; and more keys than stay packed, and than one piece of
  // backward has.
  all.push_back({.sequence_length = 260, .head_dim = 128});
  all.push_back({.sequence_length = 1100, .head_dim = 3});
  for (Config& config : all) config.dtype = DType::kBF16;
  return all;
}

// With kernels for any host, or for AVX-512.
class AttentionTiles : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const Kernels* kernels = emulated_kernels(GetParam());
    if (kernels == nullptr) GTEST_SKIP() << "no AVX512-BF16 on this machine";
    run_on_.emplace(*kernels);
  }
  std::optional<RunOn> run_on_;
};

TEST_P(AttentionTiles, MatchTheDefinition) {
  for (const Config& config : sizes()) check_both(config);
}

// Documents that begin anywhere around strips, tiles and blocks; each in a sequence of its own.
TEST_P(AttentionTiles, StopAtDocumentBoundaries) {
  const std::vector<int64_t> boundaries = {1,  2,  15, 16, 17, 31, 32, 33,
                                           47, 48, 49, 63, 64, 65, 79, 80};
  for (const bool causal : {true, false}) {
    check_both({.sequences = static_cast<int64_t>(boundaries.size()),
                .sequence_length = 81,
                .head_dim = 5,
                .causal = causal,
                .dtype = DType::kBF16,
                .boundary_of = boundaries});
  }
}

// Scores of hundreds, whose offsets move in later blocks.
TEST_P(AttentionTiles, KeepLargeScores) {
  check_forward({.sequence_length = 200, .head_dim = 64, .dtype = DType::kBF16, .scale = 20});
}

INSTANTIATE_TEST_SUITE_P(Emulated, AttentionTiles, testing::Bool(),
                         [](const auto& info) { return info.param ? "Avx512" : "AnyHost"; });

std::vector<std::vector<double>> results_on(const Kernels& kernels, const Config& config) {
  const RunOn run_on(kernels);
  std::vector<std::vector<double>> results;
  for (const op_test::OpCase& test : {forward_case(config), backward_case(config)}) {
    const op_test::BuiltCase built = op_test::build(test, test.op == &kAttention ? 2 : 3);
    const op_test::GraphRun run(built.graph, built.inputs, {});
    for (const ValueId id : built.graph.nodes()[0].outputs) results.push_back(run.read(id));
  }
  return results;
}

// The instructions, where this machine has them, and what is said to be the same.
TEST(AttentionTiles, TheInstructionsGiveTheSameBits) {
  if (!cpu_uses_amx()) GTEST_SKIP() << "no tiles on this machine";
  const Kernels& amx = attention_cpu::kernels_for(DType::kBF16, attention_cpu::Products::kTiles);
  for (const Config& config : sizes()) {
    EXPECT_TRUE(results_on(amx, config) == results_on(*emulated_kernels(true), config))
        << text_of(config);
  }
}

}  // namespace
}  // namespace skein
#endif  // HWY_ONCE
