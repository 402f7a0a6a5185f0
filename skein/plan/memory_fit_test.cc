// Large models on described machines: the sum over a node decides whether a run fits, and following
// the advice makes it fit.
#include "skein/plan/memory_fit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/plan/memory_text.h"
#include "skein/plan/search/layout_search.h"
#include "tests/places.h"

namespace skein {
namespace {

constexpr double kGigabyte = 1e9;

Hardware machine(bool is_cpu, int64_t devices, double device_gb, double host_gb = 0) {
  Hardware hardware;
  hardware.name = "a made-up machine";
  hardware.devices_per_node = devices;
  hardware.unified_memory = is_cpu;
  hardware.memory_bytes = static_cast<int64_t>(device_gb * kGigabyte);
  hardware.host_memory_bytes = static_cast<int64_t>(host_gb * kGigabyte);
  hardware.memory_bytes_per_s = 1e11;
  hardware.bf16 = hardware.f32 = {1e12, 1e12};
  hardware.intra_node = hardware.inter_node = {1e10, 1e-5};
  return hardware;
}

PlanRequest request_of(const std::string& toml, const Hardware& hardware, int64_t ranks = 1,
                       const std::vector<std::string>& overrides = {}) {
  PlanRequest request;
  request.config = parse_config(toml, "test.toml", overrides);
  request.config.device.kind = "cpu";
  request.model = planned_model(request.config);
  request.kernels = training_kernels(request.config);
  request.hardware = hardware;
  request.ranks = ranks;
  request.limits = memory_limits(hardware);
  return request;
}

// A model of 1.36 billion parameters.
const char* const kBillion = R"(
[model]
hf_config = ""
hidden_size = 2048
intermediate_size = 5632
num_hidden_layers = 24
num_attention_heads = 16
num_key_value_heads = 16
vocab_size = 32000
max_position_embeddings = 2048
[data]
sequence_length = 512
[batch]
global_sequences = 8
micro_sequences = 1
)";

std::string llama3_8b(int64_t micro_sequences) {
  return fmt::format(
      "[model]\nhf_config = \"{}/configs/models/llama3-8b.json\"\n[data]\nsequence_length = 512\n"
      "[batch]\nglobal_sequences = 8\nmicro_sequences = {}\n",
      kSourceFolder, micro_sequences);
}

// Plans the configuration with the settings of a change, as a user would apply them.
Plan plan_with(const std::string& toml, const Hardware& hardware, int64_t ranks,
               const MemoryAdvice::Proposal& change) {
  std::vector<std::string> overrides;
  for (const std::string& setting : change.settings) {
    if (setting.starts_with("--ranks ")) {
      ranks = std::stoll(setting.substr(8));
    } else {
      overrides.push_back(setting);
      if (setting.starts_with("launch.workers")) ranks = std::stoll(setting.substr(15));
    }
  }
  PlanRequest request = request_of(toml, hardware, ranks, overrides);
  request.hardware.devices_per_node = std::min(hardware.devices_per_node, ranks);
  return make_plan(request);
}

void expect_true(const MemoryAdvice& advice, const std::string& toml, const Hardware& hardware,
                 int64_t ranks) {
  for (const auto* list : {&advice.fits, &advice.more_nodes}) {
    for (const auto& change : *list) {
      SCOPED_TRACE(change.settings.front());
      const Plan plan = plan_with(toml, hardware, ranks, change);
      EXPECT_TRUE(all_fit(plan.memory));
      EXPECT_EQ(tightest(plan.memory).spare_bytes(), change.spare_bytes);
    }
  }
}

// Regression: the plan said "fits 25.3 GB of device memory, 6.01 GB to spare", at a total of 32.9
// GB.
TEST(MemoryFit, ACpuHoldsTheSnapshotBesideTheWeights) {
  const Hardware cpu = machine(true, 1, 25.3);
  const PlanRequest request = request_of(kBillion, cpu);
  const Plan plan = make_plan(request);
  EXPECT_NEAR(static_cast<double>(plan.num_parameters), 1.36e9, 0.02e9);
  const StagePlan& rank = plan.largest();
  EXPECT_LT(rank.device_bytes(), cpu.memory_bytes);  // the device's part alone would fit
  EXPECT_GT(rank.total_bytes(), cpu.memory_bytes);
  ASSERT_EQ(plan.memory.size(), 1u);
  EXPECT_EQ(plan.memory[0].memory, "device and host");
  EXPECT_EQ(plan.memory[0].needed_bytes, rank.total_bytes() + rank.process_bytes);
  EXPECT_FALSE(all_fit(plan.memory));

  const MemoryAdvice advice = advise(request, plan);
  expect_true(advice, kBillion, cpu, 1);
  ASSERT_FALSE(advice.fits.empty());
  EXPECT_EQ(advice.fits[0].settings,
            std::vector<std::string>{"precision.moments=bf16"});  // moments of 2 bytes, not 4
  const std::string text = memory_refusal(plan, advice) + "\n" + memory_table(plan);
  for (const char* word :
       {"Nothing was allocated", "It would fit with precision.moments=bf16 (", "snapshot",
        "process", "too much", "a node of a made-up machine", "precision.moments"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  }
  EXPECT_EQ(text.find("micro_sequences"), std::string::npos) << text;
}

// Regression: the run allocated 16 GB for weights, failed at the gradients, and advised smaller
// micro-batches, which do not help.
TEST(MemoryFit, WhatNothingMakesFitIsSaidWithTheLeastThatWasReached) {
  const Hardware cpu = machine(true, 1, 25.3);
  const PlanRequest request = request_of(llama3_8b(1), cpu);
  const Plan plan = make_plan(request);
  EXPECT_GT(tightest(plan.memory).needed_bytes, 150 * kGigabyte);
  const MemoryAdvice advice = advise(request, plan);
  EXPECT_TRUE(advice.fits.empty());
  EXPECT_GT(advice.smallest.needed_bytes, cpu.memory_bytes);
  EXPECT_LT(advice.smallest.needed_bytes, tightest(plan.memory).needed_bytes);
  expect_true(advice, llama3_8b(1), cpu, 1);
  const std::string text = advice_text(advice, plan) + advice_line(advice);
  EXPECT_NE(text.find("No setting makes it fit: the least is"), std::string::npos) << text;
  EXPECT_EQ(text.find("micro_sequences"), std::string::npos) << text;
}

TEST(MemoryFit, SmallerMicroBatchesAreAdvisedWhereActivationsAreTheMatter) {
  const Hardware cpu = machine(true, 1, 60);
  const std::string toml = std::string(kBillion) + "";
  PlanRequest request = request_of(
      toml, cpu, 1,
      {"batch.global_sequences=64", "batch.micro_sequences=64", "memory.recompute=none"});
  const Plan plan = make_plan(request);
  ASSERT_FALSE(all_fit(plan.memory));
  const MemoryAdvice advice = advise(request, plan);
  const bool found = std::any_of(advice.fits.begin(), advice.fits.end(), [](const auto& change) {
    return change.settings == std::vector<std::string>{"batch.micro_sequences=1"};
  });
  EXPECT_TRUE(found) << advice_text(advice, plan);
}

TEST(MemoryFit, AllWorkersOfANodeAreCounted) {
  const Plan one = make_plan(request_of(kBillion, machine(true, 1, 60)));
  EXPECT_TRUE(all_fit(one.memory));
  // Two ranks: each holds all weights and gradients, and half of the moments.
  const Hardware shared = machine(true, 2, 18);
  const PlanRequest request = request_of(kBillion, shared, 2);
  const Plan two = make_plan(request);
  EXPECT_FALSE(all_fit(two.memory));
  EXPECT_EQ(two.memory[0].ranks, 2);
  int64_t exact = 0;
  for (int64_t rank = 0; rank < 2; ++rank) {
    const StagePlan plan = plan_of_rank(request, rank);
    exact += plan.total_bytes() + plan.process_bytes;
  }
  EXPECT_EQ(two.memory[0].needed_bytes, exact);
  const MemoryAdvice advice = advise(request, two);
  expect_true(advice, kBillion, shared, 2);
  const bool fewer = std::any_of(advice.fits.begin(), advice.fits.end(), [](const auto& change) {
    return change.settings == std::vector<std::string>{"launch.workers=1"};
  });
  EXPECT_TRUE(fewer) << advice_text(advice, two);
}

// Stages hold different parts of the model: a node with both needs their sum, not twice the larger.
TEST(MemoryFit, StagesOfANodeAreAddedUp) {
  const PlanRequest request =
      request_of(kBillion, machine(true, 2, 20), 2, {"parallel.pipeline=2"});
  const Plan plan = make_plan(request);
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_NE(plan.stages[0].total_bytes(), plan.stages[1].total_bytes());
  EXPECT_EQ(plan.memory[0].needed_bytes,
            plan.stages[0].total_bytes() + plan.stages[0].process_bytes +
                plan.stages[1].total_bytes() + plan.stages[1].process_bytes);
}

TEST(MemoryFit, AGpuAndItsHostAreJudgedApart) {
  const Plan fits = make_plan(request_of(kBillion, machine(false, 8, 80, 512)));
  ASSERT_EQ(fits.memory.size(), 2u);
  EXPECT_EQ(fits.memory[0].needed_bytes, fits.largest().device_bytes());
  EXPECT_EQ(fits.memory[1].needed_bytes,
            fits.largest().host_bytes() + fits.largest().process_bytes);
  EXPECT_TRUE(all_fit(fits.memory));

  const PlanRequest small_host = request_of(kBillion, machine(false, 8, 80, 12));
  const Plan plan = make_plan(small_host);
  EXPECT_TRUE(plan.memory[0].fits());
  EXPECT_FALSE(plan.memory[1].fits());
  expect_true(advise(small_host, plan), kBillion, small_host.hardware, 1);

  const PlanRequest small_device = request_of(kBillion, machine(false, 8, 16, 512));
  const Plan other = make_plan(small_device);
  EXPECT_FALSE(other.memory[0].fits());
  const MemoryAdvice advice = advise(small_device, other);
  expect_true(advice, kBillion, small_device.hardware, 1);
  const bool offload = std::any_of(advice.fits.begin(), advice.fits.end(), [](const auto& change) {
    return change.settings == std::vector<std::string>{"memory.offload_optimizer=true"};
  });
  EXPECT_TRUE(offload) << advice_text(advice, other);
}

TEST(MemoryFit, ALimitOfAddressesIsOfEachProcess) {
  PlanRequest request = request_of(kBillion, machine(true, 2, 1000), 2);
  request.limits = {{"", "RLIMIT_AS", 30'000'000'000, 20'000'000'000, true}};
  const Plan plan = make_plan(request);
  ASSERT_EQ(plan.memory.size(), 1u);
  EXPECT_EQ(plan.memory[0].ranks, 1);
  EXPECT_LT(plan.memory[0].needed_bytes, 2 * plan.largest().total_bytes());
  EXPECT_GT(plan.memory[0].needed_bytes, plan.largest().total_bytes());
}

TEST(MemoryFit, MoreRanksOfMoreNodesAreCountedByTheNode) {
  const Plan one = make_plan(request_of(kBillion, machine(true, 2, 40), 2));
  const Plan four = make_plan(request_of(kBillion, machine(true, 2, 40), 8));
  EXPECT_EQ(four.memory[0].ranks, 2);
  EXPECT_LT(four.memory[0].needed_bytes, one.memory[0].needed_bytes);  // ZeRO shares the moments
}

// What is planned to fit leaves a share of each memory free; what training asks leaves none.
TEST(MemoryFit, AMarginIsLeftFreeOfEachMemory) {
  PlanRequest request = request_of(kBillion, machine(false, 8, 80, 512));
  EXPECT_EQ(request.memory_margin, 0);
  const int64_t device = make_plan(request).fullest().device_bytes();
  request.hardware.memory_bytes = device;
  EXPECT_TRUE(make_plan(request).memory[0].fits());
  EXPECT_EQ(make_plan(request).memory[0].margin_bytes, 0);

  request.memory_margin = 0.02;
  request.hardware.memory_bytes = device + device / 50;  // 2 % of this is a little more
  const Plan short_of_it = make_plan(request);
  EXPECT_FALSE(short_of_it.memory[0].fits());
  EXPECT_GT(short_of_it.memory[0].available_bytes, short_of_it.memory[0].needed_bytes);
  EXPECT_NE(memory_text(short_of_it).find(" too much beside a margin of "), std::string::npos)
      << memory_text(short_of_it);

  request.hardware.memory_bytes = device + device / 49 + 2;
  const Plan enough = make_plan(request);
  EXPECT_TRUE(all_fit(enough.memory));
  EXPECT_NE(memory_text(enough).find(" to spare beside a margin of "), std::string::npos);
  for (const MemoryFit& fit : enough.memory) {
    EXPECT_EQ(fit.margin_bytes, margin_of(fit.available_bytes, 0.02)) << fit.memory;
  }
}

// The search goes by the same: with the margin a layout that just fits is none of them.
TEST(MemoryFit, TheSearchLeavesTheMargin) {
  PlanRequest request = request_of(kBillion, machine(false, 1, 80, 512));
  const SearchResult all = search_layouts(request);
  ASSERT_FALSE(all.best.empty());
  int64_t most = 0;
  for (const auto& found : all.best) most = std::max(most, found.plan.fullest().device_bytes());
  request.hardware.memory_bytes = most;
  const auto largest = [](const SearchResult& result) {
    int64_t bytes = 0;
    for (const auto& found : result.best) {
      bytes = std::max(bytes, found.plan.fullest().device_bytes());
    }
    return bytes;
  };
  EXPECT_EQ(largest(search_layouts(request)), most);
  request.memory_margin = 0.02;
  const SearchResult with_margin = search_layouts(request);
  EXPECT_LE(largest(with_margin), most - margin_of(most, 0.02));
  EXPECT_NE(search_to_text(with_margin, request).find("leaves 2 % of the memory free"),
            std::string::npos);
}

TEST(MemoryFit, WithoutAFigureOfTheHostOnlyDevicesAreJudged) {
  const Plan plan = make_plan(request_of(kBillion, machine(false, 1, 80)));
  ASSERT_EQ(plan.memory.size(), 1u);
  EXPECT_EQ(plan.memory[0].memory, "device");
}

}  // namespace
}  // namespace skein
