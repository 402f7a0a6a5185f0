#include "skein/plan/sketch.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "skein/model/decoder.h"
#include "skein/plan/planned_run.h"
#include "skein/plan/process_bytes.h"

namespace skein {
namespace {

constexpr size_t kActivations = static_cast<size_t>(Arena::kActivations);
constexpr size_t kHostActivations = static_cast<size_t>(Arena::kHostActivations);
constexpr size_t kWorkspace = static_cast<size_t>(Arena::kWorkspace);

// The small mesh has one chunk a stage, and every position that the layout has.
SketchKey small_run(const PlanRequest& request, int64_t num_chunks) {
  SketchKey small = {request.config};
  const int64_t per_stage = request.ranks / request.config.parallel.pipeline;
  small.config.parallel.pipeline = std::min(num_chunks, static_cast<int64_t>(kNumChunkPositions));
  small.config.parallel.virtual_stages = 1;
  small.ranks = small.config.parallel.pipeline * per_stage;
  return small;
}

// Plans of the stages of the small mesh, whose ranks hold one chunk of `layers` layers each.
std::vector<StagePlan> plan_chunks(const PlanRequest& request, const SketchKey& small,
                                   int64_t layers) {
  const int64_t stages = small.config.parallel.pipeline;
  DecoderConfig model = request.model;
  model.num_hidden_layers = stages * layers;
  const PlannedRun run(small.config, model, small.ranks);
  std::optional<TrainingGraphs> whole;
  std::vector<StagePlan> plans;
  for (int64_t stage = 0; stage < stages; ++stage) {
    StepSpec spec = run.spec_of(stage, /*data_rank=*/0);
    spec.update.bucket_bytes = bucket_bytes(num_parameters(request.model));
    const Pricing pricing(request.hardware, spec.layout.mesh, compute_dtype(spec.update.precision));
    // The layouts that are planned in full are checked.
    if (!whole) whole = whole_graphs(spec, {}, Checks::kNone);
    const TrainingGraphs graphs = stage_graphs(*whole, spec, {}, Checks::kNone);
    StagePlan plan = plan_stage(spec, graphs, request.kernels, pricing, Checks::kNone);
    const int64_t slots =
        max_in_flight(stage_tasks(spec.pipeline(), stage), plan.chunks.front().chunk);
    for (const size_t arena : {kActivations, kHostActivations}) plan.arena_bytes[arena] /= slots;
    plans.push_back(std::move(plan));
  }
  return plans;
}

// one + (layers - 1) (two - one)
template <typename Number>
Number extrapolate(Number one, Number two, int64_t layers) {
  return one + static_cast<Number>(layers - 1) * (two - one);
}

ProgramSeconds extrapolate(const ProgramSeconds& one, const ProgramSeconds& two, int64_t layers) {
  return {extrapolate(one.compute, two.compute, layers),
          extrapolate(one.blocking, two.blocking, layers),
          extrapolate(one.hideable, two.hideable, layers),
          std::max(one.last_hideable, two.last_hideable), one.transfer};
}

void add_chunk(StagePlan& stage, const ChunkSketch& sketch, int64_t chunk, int64_t layers,
               int64_t slots) {
  const auto& [one, two] = sketch;
  for (size_t arena = 0; arena < stage.arena_bytes.size(); ++arena) {
    const int64_t bytes = extrapolate(one.arena_bytes[arena], two.arena_bytes[arena], layers);
    const bool is_kept = arena == kActivations || arena == kHostActivations;
    int64_t& sum = stage.arena_bytes[arena];
    sum = arena == kWorkspace ? std::max(sum, two.arena_bytes[arena])
                              : sum + bytes * (is_kept ? slots : 1);
  }
  stage.on_host = one.on_host;
  stage.snapshot_bytes += extrapolate(one.snapshot_bytes, two.snapshot_bytes, layers);
  stage.loader_bytes = one.loader_bytes;
  const ChunkPlan &a = one.chunks.front(), &b = two.chunks.front();
  stage.chunks.push_back({chunk, extrapolate(a.forward, b.forward, layers),
                          extrapolate(a.backward, b.backward, layers),
                          extrapolate(a.last_backward, b.last_backward, layers),
                          extrapolate(a.pair, b.pair, layers)});
  const ProgramSeconds update = extrapolate(one.update, two.update, layers);
  stage.update.compute += update.compute;
  stage.update.blocking += update.blocking;
  stage.update.hideable += update.hideable;
  stage.update.last_hideable = std::max(stage.update.last_hideable, update.last_hideable);
}

}  // namespace

ChunkPosition position_of(int64_t chunk, int64_t num_chunks) {
  if (chunk == 0) return ChunkPosition::kFirst;
  return chunk + 1 == num_chunks ? ChunkPosition::kLast : ChunkPosition::kMiddle;
}

size_t SketchKey::Hash::operator()(const SketchKey& key) const {
  const ParallelConfig& parallel = key.config.parallel;
  size_t hash = std::hash<std::string>()(key.config.memory.recompute);
  for (const int64_t part :
       {key.ranks, parallel.pipeline, parallel.tensor, parallel.context, parallel.zero,
        int64_t{parallel.pairs}, key.config.batch.micro_sequences}) {
    hash = hash * 31 + static_cast<size_t>(part);
  }
  return hash;
}

std::shared_ptr<SketchCache::CacheSlot> SketchCache::slot_of(const SketchKey& key) {
  const Lock lock(mutex_);
  std::shared_ptr<CacheSlot>& slot = slots_[key];
  if (!slot) slot = std::make_shared<CacheSlot>();
  return slot;
}

SketchCache::SharedSketches sketch_chunks(const PlanRequest& request, int64_t num_chunks,
                                          SketchCache& cache) {
  const SketchKey small = small_run(request, num_chunks);
  return cache.get(small, [&] {
    std::vector<StagePlan> ones = plan_chunks(request, small, 1);
    std::vector<StagePlan> twos = plan_chunks(request, small, 2);
    auto sketches = std::make_shared<ChunkSketches>();
    for (size_t stage = 0; stage < ones.size(); ++stage) {
      (*sketches)[position_of(static_cast<int64_t>(stage), std::ssize(ones))] = {
          std::move(ones[stage]), std::move(twos[stage])};
    }
    return sketches;
  });
}

Plan sketch_plan(const PlanRequest& request, SketchCache& cache) {
  Plan plan;
  const PlannedRun run(request.config, request.model, request.ranks);
  plan.layout = run.layout();
  plan.num_parameters = num_parameters(request.model);
  plan.hardware = request.hardware;
  plan.threads = request.threads;
  const StepSpec spec = run.spec_of(0, run.layout().shares().kinds().front());
  const PipelineShape shape = spec.pipeline();
  const auto sketches = sketch_chunks(request, shape.num_chunks(), cache);
  const auto layers = chunk_layers(request.model.num_hidden_layers, shape.num_chunks());
  const int64_t bytes_of_process =
      process_bytes(request.config, spec, request.threads, !request.hardware.unified_memory);
  for (int64_t stage = 0; stage < shape.num_stages; ++stage) {
    StagePlan of_stage;
    of_stage.stage = stage;
    const std::vector<Task> tasks = stage_tasks(shape, stage);
    for (int64_t chunk = stage; chunk < shape.num_chunks(); chunk += shape.num_stages) {
      const ChunkSketch& sketch = (*sketches)[position_of(chunk, shape.num_chunks())];
      add_chunk(of_stage, sketch, chunk, layers[static_cast<size_t>(chunk)].size(),
                max_in_flight(tasks, chunk));
    }
    of_stage.process_bytes = bytes_of_process;
    plan.stages.push_back(std::move(of_stage));
  }
  plan.memory_margin = request.memory_margin;
  plan.memory = memory_fits(plan, request.limits);
  plan.step = predict_step(plan.layout, shape, plan.stages, plan.hardware);
  return plan;
}

}  // namespace skein
