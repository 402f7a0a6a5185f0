// The HLO that a plugin makes of StableHLO, rewritten for compilers of an older XLA: XLA reads it
// back, and it computes the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skein/runtime/pjrt/compile_options.h"
#include "skein/runtime/pjrt/hlo_dump.h"
#include "skein/runtime/pjrt/pjrt_library.h"
#include "tests/error_of.h"
#include "tests/pjrt/op_kernels.h"
#include "tests/pjrt/plugin.h"

namespace skein::pjrt_test {
namespace {

constexpr const char* kSums = R"(
module @sums attributes {mhlo.num_replicas = 4 : i32, mhlo.num_partitions = 1 : i32} {
  func.func private @twice(%a: tensor<3xf32>) -> (tensor<3xf32>) {
    %0 = stablehlo.add %a, %a : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
  func.func public @main(%a: tensor<3xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<3xf32>)
      -> (tensor<3xf32>, tensor<3xf32>) {
    %0 = "stablehlo.all_reduce"(%a) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32> }) {channel_handle = #stablehlo.channel_handle<
        handle = 0, type = 0>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}
      : (tensor<3xf32>) -> tensor<3xf32>
    %1 = func.call @twice(%0) : (tensor<3xf32>) -> (tensor<3xf32>)
    %2 = func.call @twice(%b) : (tensor<3xf32>) -> (tensor<3xf32>)
    return %2, %1 : tensor<3xf32>, tensor<3xf32>
  }
}
)";

// As XLA itself reads the module.
PjrtExecutable compiled_hlo(const PjrtClient& client, const std::string& bytes,
                            int64_t num_replicas) {
  PJRT_Program program{};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  program.code = const_cast<char*>(bytes.data());
  program.code_size = bytes.size();
  program.format = "hlo";
  program.format_size = 3;
  const std::string options = compile_options(num_replicas, "");
  SKEIN_PJRT_ARGS(PJRT_Client_Compile, args);
  args.client = client.library().client;
  args.program = &program;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  client.library().check(client.library().api->PJRT_Client_Compile(&args), "compile HLO");
  return {&client, args.executable};
}

TEST(HloDump, OfCollectivesCallsAndDonations) {
  const stablehlo::HloModule module = dump_hlo(plugin_path(SKEIN_SOURCE_DIR), kSums, 4);
  EXPECT_EQ(module.name, "sums");
  EXPECT_EQ(module.num_parameters, 2);
  EXPECT_EQ(module.num_results, 2);
  EXPECT_EQ(module.donated, (std::vector<int>{1, -1}));
  EXPECT_GT(module.num_instructions, 8);
}

TEST(HloDump, ComputesWhatTheTextDoes) {
  const PjrtClient& client = client_under_test();
  const stablehlo::HloModule module = dump_hlo(plugin_path(SKEIN_SOURCE_DIR), kSums, 4);
  const PjrtExecutable executable = compiled_hlo(client, module.bytes, 4);
  std::vector<PjrtBuffer> buffers;
  std::vector<std::vector<PJRT_Buffer*>> arguments(4);
  const stablehlo::Type type{stablehlo::Element::kF32, {3}};
  for (int device = 0; device < 4; ++device) {
    for (const float value : {static_cast<float>(1 << device), 10.0f}) {
      const std::vector<float> values(3, value);
      buffers.push_back(client.put(values.data(), type, device));
      arguments[device].push_back(buffers.back().get());
    }
  }
  const auto results = client.execute(executable, arguments, 2);
  for (int device = 0; device < 4; ++device) {
    std::vector<float> twice(3), sum(3);
    client.get(results[device][0], twice.data(), 12);
    client.get(results[device][1], sum.data(), 12);
    EXPECT_THAT(twice, testing::Each(20.0f));
    EXPECT_THAT(sum, testing::Each(device % 2 == 0 ? 10.0f : 20.0f)) << device;
  }
}

TEST(HloDump, TellsWhatThePluginSaysOfATextThatIsWrong) {
  const std::string text = "module @m { not StableHLO }";
  EXPECT_THAT(test::error_of([&] { dump_hlo(plugin_path(SKEIN_SOURCE_DIR), text, 1); }),
              testing::AllOf(testing::HasSubstr("wrote no HLO"), testing::HasSubstr("unknown")));
}

}  // namespace
}  // namespace skein::pjrt_test
