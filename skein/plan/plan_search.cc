#include "skein/plan/plan_search.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <numeric>
#include <thread>

#include "skein/base/error.h"
#include "skein/base/mutex.h"
#include "skein/base/units.h"
#include "skein/config/batches.h"
#include "skein/model/decoder.h"
#include "skein/passes/pair_programs.h"
#include "skein/plan/plan_sketch.h"

namespace skein {
namespace {

constexpr int64_t kMostChunks = 8;  // per stage
constexpr std::array<int64_t, 4> kMicroSequences = {1, 2, 4, 8};
// Factor on the lower bounds: some memory is not split among ranks.
constexpr double kSlack = 0.97;
constexpr const char* kPolicies[] = {"none", "selective", "full"};

struct Candidate {
  Config config;
  double least_seconds = 0;
};

ArenaBytes on_device(const StagePlan& stage) {
  ArenaBytes bytes = stage.arena_bytes;
  for (size_t arena = 0; arena < bytes.size(); ++arena) {
    if (stage.on_host[arena]) bytes[arena] = 0;
  }
  return bytes;
}

// The memory of a device without the margin; where the ranks of a node share one memory, an equal
// part of its free bytes.
int64_t memory_of_rank(const PlanRequest& request) {
  const Hardware& hardware = request.hardware;
  const auto without_margin = [&](int64_t bytes) {
    return bytes - margin_of(bytes, request.memory_margin);
  };
  if (!hardware.unified_memory) return without_margin(hardware.memory_bytes);
  int64_t bytes = std::numeric_limits<int64_t>::max();
  for (const MemoryLimit& limit : request.limits) {
    if (!limit.id.empty()) bytes = std::min(bytes, without_margin(limit.free_bytes));
  }
  return bytes / std::min(request.ranks, hardware.devices_per_node);
}

class Search {
 public:
  Search(const PlanRequest& request, size_t num_best)
      : request_(request), num_best_(num_best), rank_bytes_(memory_of_rank(request)) {}

  SearchResult run() {
    const auto start = std::chrono::steady_clock::now();
    for (const char* policy : kPolicies) {
      for (const int64_t micro : {kMicroSequences.front(), kMicroSequences.back()}) {
        sketch_alone(policy, micro);
      }
    }
    enumerate();
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) {
      return a.least_seconds < b.least_seconds;
    });
    std::vector<std::thread> threads;
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < cores; ++i) threads.emplace_back([this] { plan_candidates(); });
    for (std::thread& thread : threads) thread.join();
    rethrow_failure();
    result_.num_slower = static_cast<int64_t>(candidates_.size()) - result_.num_planned;
    plan_best_in_full();
    result_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  // Sketches a single device with so many sequences at a time: its seconds per token, and the
  // activation bytes that a layer stores per token. The least of all are kept: many sequences start
  // fewer ops a token, few lose less to alignment.
  void sketch_alone(const char* recompute, int64_t micro) {
    PlanRequest alone = request_;
    alone.ranks = 1;
    alone.config.parallel = {};
    alone.config.batch = {.global_sequences = micro, .micro_sequences = micro};
    alone.config.memory.recompute = recompute;
    const auto tokens = static_cast<double>(micro * alone.config.data.sequence_length);
    const StagePlan stage = sketch_plan(alone, sketches_).stages.front();
    const ChunkPlan& chunk = stage.chunks.front();
    const auto keep_least = [&](std::map<std::string, double>& least, double found) {
      const auto [entry, is_new] = least.emplace(recompute, found);
      if (!is_new) entry->second = std::min(entry->second, found);
    };
    keep_least(least_work_, kSlack * (chunk.forward.compute + chunk.backward.compute) / tokens);
    keep_least(least_kept_,
               static_cast<double>(stage.arena_bytes[static_cast<size_t>(Arena::kActivations)]) /
                   tokens / static_cast<double>(request_.model.num_hidden_layers));
  }

  // Goes through all degrees; each layout is added to `candidates_` or counted as refused, with a
  // reason.
  void enumerate() {
    const int64_t ranks = request_.ranks;
    for (int64_t tensor = 1; tensor <= std::min(ranks, request_.model.num_attention_heads);
         ++tensor) {
      if (ranks % tensor != 0 || request_.model.num_attention_heads % tensor != 0) continue;
      for (int64_t pipeline = 1;
           pipeline <= std::min(ranks / tensor, request_.model.num_hidden_layers); ++pipeline) {
        if (ranks / tensor % pipeline != 0) continue;
        for (int64_t context = 1; context <= std::min<int64_t>(8, ranks / tensor / pipeline);
             context *= 2) {
          if (ranks / tensor / pipeline % context != 0) continue;
          enumerate_variants(tensor, pipeline, context);
        }
      }
    }
  }

  void enumerate_variants(int64_t tensor, int64_t pipeline, int64_t context) {
    Config config = request_.config;
    config.parallel = {.tensor = tensor, .pipeline = pipeline, .context = context};
    config.parallel.reduction_width = request_.config.parallel.reduction_width;
    config.parallel.overlap = request_.config.parallel.overlap;
    const int64_t data = request_.ranks / (tensor * pipeline * context);
    const int64_t width = std::max(data, config.parallel.reduction_width);
    for (const int64_t micro : kMicroSequences) {
      if (micro > 1 && batch_ramp(config).divisor() % (width * micro) != 0) continue;
      config.batch.micro_sequences = micro;
      const bool one_micro_batch = width == data && config.batch.global_sequences == data * micro;
      for (int64_t v = 1; v <= kMostChunks; ++v) {
        if (v > 1 && (pipeline == 1 || pipeline * v > request_.model.num_hidden_layers)) break;
        config.parallel.virtual_stages = v;
        for (const int64_t zero : {1, 2, 3}) {
          if (zero > 1 && (data * context == 1 || (zero == 2 && !one_micro_batch))) continue;
          config.parallel.zero = zero;
          for (const char* policy : kPolicies) {
            config.memory.recompute = policy;
            consider(config);
          }
        }
      }
    }
  }

  void consider(const Config& config) {
    ++result_.num_layouts;
    ParallelLayout layout;
    try {
      layout = parallel_layout(config, request_.model, request_.ranks, 0);
      check_token_split(config);
    } catch (const IndivisibleBatch& error) {
      return refuse("the batch cannot be split so", error.what());
    } catch (const Error& error) {
      return refuse("the model cannot be split so", error.what());
    }
    add_candidate(config, layout);
    Config in_pairs = config;
    in_pairs.parallel.pairs = true;
    const bool may_pair = config.parallel.pipeline == 1 && config.parallel.overlap;
    if (!may_pair || !idle_pairs(in_pairs, layout).empty()) return;
    ++result_.num_layouts;
    add_candidate(in_pairs, layout);
  }

  void add_candidate(const Config& config, const ParallelLayout& layout) {
    if (refuse_large(config, least_bytes(config, layout), "at least ")) return;
    candidates_.push_back({config, least_seconds(config, layout)});
  }

  // A lower bound on bytes: weights, gradients and optimizer state, and the activations that the
  // first stage stores for the micro-batches in flight.
  ArenaBytes least_bytes(const Config& config, const ParallelLayout& layout) const {
    const StepSpec spec = step_spec(config, request_.model, layout);
    const PipelineShape shape = pipeline_shape(spec);
    const auto data = static_cast<double>(layout.data_degree());
    const auto context = static_cast<double>(config.parallel.context);
    const auto tensor = static_cast<double>(config.parallel.tensor);
    const double parameters = static_cast<double>(num_parameters(request_.model)) / tensor /
                              static_cast<double>(shape.num_stages);
    const double moments = 2.0 * size_of(spec.update.moments) +
                           (spec.update.precision == Precision::kMixed ? 4.0 : 0.0);
    const bool reduced_early = layout.zero >= 2 && runs_one_micro_batch(spec);
    const double tokens =
        static_cast<double>(spec.micro_sequences * spec.sequence_length) / context;
    const int64_t in_flight =
        spec.in_pairs ? kPairSlots : std::min(shape.num_stages, shape.micro_batches);
    const double layers = static_cast<double>(request_.model.num_hidden_layers * in_flight) /
                          static_cast<double>(shape.num_stages);
    ArenaBytes bytes{};
    const auto set = [&](Arena arena, double value) {
      bytes[static_cast<size_t>(arena)] = static_cast<int64_t>(value);
    };
    set(Arena::kWeights, parameters * size_of(compute_dtype(spec.update.precision)) /
                             (layout.zero >= 3 ? data * context : 1));
    set(Arena::kGradients, parameters * 4 / (reduced_early ? data * context : 1));
    if (!config.memory.offload_optimizer) {
      set(Arena::kOptimizer, parameters * moments / (data * context));
    }
    if (!config.memory.offload_activations) {  // otherwise it depends on the sizes of single values
      set(Arena::kActivations,
          kSlack * layers * tokens / tensor * least_kept_.at(config.memory.recompute));
    }
    return bytes;
  }

  // A lower bound on seconds: the work divided evenly among the ranks, the pipeline's idle share,
  // and the tensor collectives of any layout, which are 4 all-gathers and 4 reduce-scatters a
  // layer. Those of backward hide (passes/overlap_layers.h), in pairs those of forward, too.
  double least_seconds(const Config& config, const ParallelLayout& layout) const {
    const DecoderConfig& model = request_.model;
    const StepSpec spec = step_spec(config, model, layout);
    const PipelineShape shape = pipeline_shape(spec);
    const int64_t length = config.data.sequence_length;
    const auto tokens = static_cast<double>(config.batch.global_sequences * length);
    const DType dtype = compute_dtype(spec.update.precision);
    double seconds =
        tokens * least_work_.at(config.memory.recompute) / static_cast<double>(request_.ranks);
    const int64_t tensor = config.parallel.tensor;
    if (tensor > 1) {
      const GroupPlace place = place_group(tensor, 1, request_.ranks, request_.hardware);
      const auto bytes =
          static_cast<double>(config.batch.micro_sequences * length / config.parallel.context *
                              model.hidden_size * size_of(dtype));
      const double each =
          collective_seconds(CollectiveKind::kAllReduce, bytes, place, request_.hardware);
      const double hidden = config.parallel.overlap ? request_.hardware.overlap : 0;
      seconds += (4 - (config.parallel.pairs ? 4 : 2) * hidden) * each *
                 static_cast<double>(model.num_hidden_layers) /
                 static_cast<double>(shape.num_stages) * static_cast<double>(shape.micro_batches);
    }
    const double idle = static_cast<double>(shape.num_stages - 1) /
                        static_cast<double>(shape.micro_batches * shape.virtual_stages);
    return seconds * (1 + idle);
  }

  void refuse(const std::string& reason, const std::string& example) {
    SearchResult::Refused& refused = result_.refused[reason];
    if (refused.count++ == 0) refused.example = example;
  }

  void rethrow_failure() {
    const Lock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

  const Candidate* next() {
    const Lock lock(mutex_);
    if (failure_ || next_ == candidates_.size()) return nullptr;
    const Candidate& candidate = candidates_[next_];
    const bool enough = result_.best.size() >= num_best_;
    if (enough && candidate.least_seconds > result_.best[num_best_ - 1].plan.step.step_seconds) {
      return nullptr;
    }
    ++next_;
    ++result_.num_planned;
    return &candidate;
  }

  void plan_candidates() try {
    omp_set_num_threads(request_.threads);  // OpenMP keeps this per thread
    while (const Candidate* candidate = next()) plan_candidate(*candidate);
  } catch (...) {
    const Lock lock(mutex_);
    failure_ = std::current_exception();
  }

  void plan_candidate(const Candidate& candidate) {
    PlanRequest request = request_;
    request.config = candidate.config;
    Plan plan;
    try {
      plan = sketch_plan(request, sketches_);
    } catch (const Error& error) {
      const Lock lock(mutex_);
      refuse("the passes cannot split it so",
             fmt::format("{}: {}", layout_text(candidate.config), error.what()));
      return;
    }
    const Lock lock(mutex_);
    if (!refuse_unfit(candidate.config, plan)) insert({candidate.config, std::move(plan)});
  }

  bool refuse_large(const Config& config, const ArenaBytes& bytes, const char* how = "") {
    const int64_t excess = std::accumulate(bytes.begin(), bytes.end(), int64_t{0}) - rank_bytes_;
    if (excess <= 0) return false;
    const auto largest = std::max_element(bytes.begin(), bytes.end());
    const std::string name(arena_name(static_cast<Arena>(largest - bytes.begin())));
    refuse("too large, mostly " + name,
           fmt::format("{}: {}too large by {}: {} {}", layout_text(config), how,
                       format_bytes(excess), name, format_bytes(*largest)));
    return true;
  }

  // Checks the device, and the host memory of all ranks of a node.
  bool refuse_unfit(const Config& config, const Plan& plan) {
    if (refuse_large(config, on_device(plan.fullest()))) return true;
    if (all_fit(plan.memory)) return false;
    const MemoryFit& fit = tightest(plan.memory);
    refuse(fmt::format("too large for {} memory", fit.memory),
           fmt::format("{}: {} ranks of a node need {} of {}", layout_text(config), fit.ranks,
                       format_bytes(fit.needed_bytes),
                       format_bytes(fit.available_bytes - fit.margin_bytes)));
    return true;
  }

  void insert(SearchResult::Found found) {
    auto& best = result_.best;
    const auto at =
        std::upper_bound(best.begin(), best.end(), found, [](const auto& a, const auto& b) {
          return a.plan.step.step_seconds < b.plan.step.step_seconds;
        });
    best.insert(at, std::move(found));
    if (best.size() > 2 * num_best_) best.pop_back();
  }

  void plan_best_in_full() {
    std::vector<SearchResult::Found> first = std::move(result_.best);
    result_.best.clear();
    for (SearchResult::Found& found : first) {
      PlanRequest request = request_;
      request.config = found.config;
      found.plan = make_plan(request);
      if (!refuse_unfit(found.config, found.plan)) insert(std::move(found));
    }
    if (result_.best.size() > num_best_) result_.best.resize(num_best_);
  }

  const PlanRequest& request_;
  const size_t num_best_;
  const int64_t rank_bytes_;
  std::vector<Candidate> candidates_;
  SketchCache sketches_;
  std::map<std::string, double> least_work_, least_kept_;  // by recompute policy
  SearchResult result_;
  Mutex mutex_;  // guards the members below, and result_ while threads run
  size_t next_ SKEIN_GUARDED_BY(mutex_) = 0;
  std::exception_ptr failure_ SKEIN_GUARDED_BY(mutex_);
};

}  // namespace

SearchResult search_layouts(const PlanRequest& request, size_t num_best) {
  return Search(request, num_best).run();
}

}  // namespace skein
