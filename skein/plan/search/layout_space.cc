#include "skein/plan/search/layout_space.h"

#include <algorithm>
#include <array>

#include "skein/base/error.h"
#include "skein/config/batches.h"
#include "skein/plan/planned_run.h"

namespace skein {
namespace {

constexpr int64_t kMostChunks = 8;  // per stage
constexpr std::array<int64_t, 4> kMicroSequences = {1, 2, 4, 8};
constexpr std::pair<RecomputePolicy, const char*> kPolicies[] = {
    {RecomputePolicy::kNone, "none"},
    {RecomputePolicy::kSelective, "selective"},
    {RecomputePolicy::kFull, "full"}};

class Space {
 public:
  Space(const PlanRequest& request, const LayoutVisitor& visitor)
      : request_(request), visitor_(visitor) {}

  void visit() {
    const int64_t ranks = request_.ranks;
    const int64_t heads = request_.model.num_attention_heads;
    for (int64_t tensor = 1; tensor <= std::min(ranks, heads); ++tensor) {
      if (ranks % tensor != 0 || heads % tensor != 0) continue;
      const int64_t most = std::min(ranks / tensor, request_.model.num_hidden_layers);
      for (int64_t pipeline = 1; pipeline <= most; ++pipeline) {
        if (ranks / tensor % pipeline != 0) continue;
        const int64_t left = ranks / tensor / pipeline;
        for (int64_t context = 1; context <= std::min<int64_t>(8, left); context *= 2) {
          if (left % context != 0) continue;
          visit_variants(
              {.tensor = tensor, .pipeline = pipeline, .context = context, .data = left / context});
        }
      }
    }
  }

 private:
  void visit_variants(LayoutChoice choice) {
    const int64_t global = request_.config.batch.global_sequences;
    const int64_t divisor = batch_ramp(request_.config).divisor();  // of every batch
    const int64_t data = choice.data, pipeline = choice.pipeline;
    const int64_t width = std::max(data, request_.config.parallel.reduction_width);
    for (const int64_t micro : kMicroSequences) {
      if (micro > 1 && divisor % (width * micro) != 0) continue;
      choice.micro_sequences = micro;
      const bool one_micro_batch = width == data && global == data * micro;
      for (int64_t v = 1; v <= kMostChunks; ++v) {
        if (v > 1 && (pipeline == 1 || pipeline * v > request_.model.num_hidden_layers)) break;
        choice.virtual_stages = v;
        for (const int64_t zero : {1, 2, 3}) {
          if (zero > 1 && (data * choice.context == 1 || (zero == 2 && !one_micro_batch))) continue;
          choice.zero = zero;
          visit_policies(choice);
        }
      }
    }
  }

  // Whether model and batch can be split so depends on neither policy nor pairs.
  void visit_policies(LayoutChoice choice) {
    const Config config = config_of(request_, choice);
    const size_t num_policies = std::size(kPolicies);
    ParallelLayout layout;
    try {
      layout = PlannedRun(config, request_.model, request_.ranks).layout();
    } catch (const IndivisibleBatch& error) {
      for (size_t i = 0; i < num_policies; ++i) {
        visitor_.refuse("the batch cannot be split so", error.what());
      }
      return;
    } catch (const Error& error) {
      for (size_t i = 0; i < num_policies; ++i) {
        visitor_.refuse("the model cannot be split so", error.what());
      }
      return;
    }
    Config paired = config;
    paired.parallel.pairs = true;
    const bool may_pair =
        choice.pipeline == 1 && config.parallel.overlap && idle_pairs(paired, layout).empty();
    for (const auto& [policy, name] : kPolicies) {
      choice.recompute = policy;
      for (const bool pairs : {false, true}) {
        choice.pairs = pairs;
        if (may_pair || !pairs) visitor_.accept(choice, layout);
      }
    }
  }

  const PlanRequest& request_;
  const LayoutVisitor& visitor_;
};

}  // namespace

Config config_of(const PlanRequest& request, const LayoutChoice& choice) {
  Config config = request.config;
  config.parallel = {.tensor = choice.tensor,
                     .pipeline = choice.pipeline,
                     .context = choice.context,
                     .virtual_stages = choice.virtual_stages,
                     .zero = choice.zero,
                     .pairs = choice.pairs};
  config.parallel.reduction_width = request.config.parallel.reduction_width;
  config.parallel.overlap = request.config.parallel.overlap;
  config.parallel.sums = request.config.parallel.sums;
  config.batch.micro_sequences = choice.micro_sequences;
  for (const auto& [policy, name] : kPolicies) {
    if (policy == choice.recompute) config.memory.recompute = name;
  }
  return config;
}

void for_each_layout(const PlanRequest& request, const LayoutVisitor& visitor) {
  Space(request, visitor).visit();
}

}  // namespace skein
