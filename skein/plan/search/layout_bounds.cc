#include "skein/plan/search/layout_bounds.h"

#include <algorithm>
#include <limits>

#include "skein/config/parameter_rules.h"
#include "skein/passes/overlap/pair_programs.h"

namespace skein {
namespace {

constexpr double kSlack = 0.97;

size_t index_of(RecomputePolicy policy) { return static_cast<size_t>(policy); }

LayoutSizes sizes_of(const PlanRequest& request, const LayoutChoice& choice,
                     const ParallelLayout& layout) {
  LayoutSizes sizes;
  sizes.of_virtual_rank =
      request.config.batch.global_sequences / layout.reduction_width / choice.micro_sequences;
  sizes.micro_batches = layout.shares().most() * sizes.of_virtual_rank;
  return sizes;
}

double seconds(const ProgramSeconds& program, double turns) {
  return program.compute * turns + program.blocking;
}

// A part of the exchange of `all` seconds that `work` seconds of computation can hide.
double exposed(double all, double work, double overlap) {
  return std::max((1 - overlap) * all, all - work);
}

}  // namespace

// Of a micro-batch on the ranks of one stage: of each layer, and of what else there is.
struct LayoutBounds::Layers {
  struct PhaseSeconds {
    double forward = 0, backward = 0, pair = 0;
    double update = 0;  // without data ranks
    double both() const { return forward + backward; }
  };
  PhaseSeconds layer, rest;
  double forward_compute = 0, backward_compute = 0;  // of the whole model
  double kept = 0;                                   // bytes of a layer
  int64_t workspace = 0;                             // least bytes, of a stage with all of it
};

// Seconds of a stage's exchange over data ranks in a step.
struct LayoutBounds::Exchange {
  double sums = 0;     // of gradients
  double gathers = 0;  // of weights, once
};

LayoutBounds::LayoutBounds(const PlanRequest& request, SketchCache& sketches)
    : request_(request),
      sketches_(sketches),
      precision_(parse_precision(request.config.precision.mode)),
      moments_(moments_dtype(request.config.precision)),
      num_parameters_(static_cast<double>(num_parameters(request.model))) {
  // Many sequences start fewer ops a token, few lose less to alignment.
  for (const RecomputePolicy policy :
       {RecomputePolicy::kNone, RecomputePolicy::kSelective, RecomputePolicy::kFull}) {
    double& work = least_work_[index_of(policy)] = std::numeric_limits<double>::infinity();
    double& kept = least_kept_[index_of(policy)] = work;
    for (const int64_t micro : {1, 8}) {
      const Layers layers = layers_of({.micro_sequences = micro, .recompute = policy});
      const auto tokens = static_cast<double>(micro * request.config.data.sequence_length);
      work = std::min(work, kSlack * (layers.forward_compute + layers.backward_compute) / tokens);
      kept = std::min(kept, kSlack * layers.kept / tokens);
    }
  }
}

double LayoutBounds::turns(int64_t devices) const {
  const Hardware& hardware = request_.hardware;
  const int64_t on_node = std::min(request_.ranks, hardware.devices_per_node);
  const int64_t at_once =
      hardware.concurrent_devices > 0 ? std::min(hardware.concurrent_devices, on_node) : on_node;
  return std::max(1.0, static_cast<double>(devices) / static_cast<double>(at_once));
}

LayoutBounds::Layers LayoutBounds::layers_of(const LayoutChoice& choice) const {
  PlanRequest alone = request_;
  alone.config = config_of(request_, {.tensor = choice.tensor,
                                      .context = choice.context,
                                      .micro_sequences = choice.micro_sequences,
                                      .recompute = choice.recompute,
                                      .pairs = choice.pairs});
  alone.config.parallel.reduction_width = 0;
  alone.config.launch = {};
  alone.config.batch.global_sequences = 2 * choice.micro_sequences;  // several micro-batches
  alone.ranks = choice.tensor * choice.context;
  const auto sketches = sketch_chunks(alone, /*num_chunks=*/1, sketches_);
  const auto& [one, two] = (*sketches)[ChunkPosition::kFirst];
  const ChunkPlan &a = one.chunks.front(), &b = two.chunks.front();
  const int64_t on_node = std::min(request_.ranks, request_.hardware.devices_per_node);
  const double beside = turns(std::min(on_node, request_.ranks / choice.pipeline));
  const auto part = [&](const ChunkPlan& chunk, const ProgramSeconds& update) {
    return Layers::PhaseSeconds{seconds(chunk.forward, beside), seconds(chunk.backward, beside),
                                seconds(chunk.pair, beside), update.compute * turns(on_node)};
  };
  const Layers::PhaseSeconds first = part(a, one.update), second = part(b, two.update);
  Layers layers;
  const auto split = [&](double Layers::PhaseSeconds::*what) {
    layers.layer.*what = second.*what - first.*what;
    layers.rest.*what = first.*what - layers.layer.*what;
  };
  for (const auto what : {&Layers::PhaseSeconds::forward, &Layers::PhaseSeconds::backward,
                          &Layers::PhaseSeconds::pair, &Layers::PhaseSeconds::update}) {
    split(what);
  }
  const auto more = static_cast<double>(request_.model.num_hidden_layers - 1);
  layers.forward_compute = a.forward.compute + more * (b.forward.compute - a.forward.compute);
  layers.backward_compute = a.backward.compute + more * (b.backward.compute - a.backward.compute);
  constexpr auto kActivations = static_cast<size_t>(Arena::kActivations);
  layers.kept = static_cast<double>(two.arena_bytes[kActivations] - one.arena_bytes[kActivations]);
  layers.workspace = one.arena_bytes[static_cast<size_t>(Arena::kWorkspace)];
  return layers;
}

LayoutBounds::Exchange LayoutBounds::exchange_of(const LayoutChoice& choice) const {
  Exchange exchange;
  if (choice.data == 1) return exchange;
  const GroupPlace place =
      place_group(choice.data, choice.context * choice.tensor, request_.ranks, request_.hardware);
  const double parameters =
      kSlack * num_parameters_ / static_cast<double>(choice.tensor * choice.pipeline);
  exchange.sums =
      collective_seconds(CollectiveKind::kReduceScatter, 4 * parameters, place, request_.hardware);
  exchange.gathers =
      collective_seconds(CollectiveKind::kAllGather,
                         parameters * static_cast<double>(size_of(compute_dtype(precision_))),
                         place, request_.hardware);
  return exchange;
}

ArenaBytes LayoutBounds::bytes_of(const LayoutChoice& choice, const LayoutSizes& sizes,
                                  double kept_a_layer) const {
  const MemoryConfig& memory = request_.config.memory;
  const auto copies = static_cast<double>(choice.data * choice.context);
  const double parameters = num_parameters_ / static_cast<double>(choice.tensor * choice.pipeline);
  // Of Muon the matrices alone have one moment, the rest two: a bound counts one.
  const Optimizer& optimizer = find_optimizer(request_.config.optimizer.name);
  const double moments = static_cast<double>(std::ssize(optimizer.state) * size_of(moments_)) +
                         (precision_ == Precision::kMixed ? 4.0 : 0.0);
  const bool reduced_early = choice.zero >= 2 && sizes.micro_batches == 1;
  const bool in_pairs = choice.pairs && sizes.of_virtual_rank > 1;
  const int64_t in_flight = in_pairs ? kPairSlots : std::min(choice.pipeline, sizes.micro_batches);
  const double layers = static_cast<double>(request_.model.num_hidden_layers * in_flight) /
                        static_cast<double>(choice.pipeline);
  ArenaBytes bytes{};
  const auto set = [&](Arena arena, double value) {
    bytes[static_cast<size_t>(arena)] = static_cast<int64_t>(value);
  };
  set(Arena::kWeights, parameters * static_cast<double>(size_of(compute_dtype(precision_))) /
                           (choice.zero >= 3 ? copies : 1));
  set(Arena::kGradients, parameters * 4 / (reduced_early ? copies : 1));
  if (!memory.offload_optimizer) set(Arena::kOptimizer, parameters * moments / copies);
  if (!memory.offload_activations) {  // otherwise it depends on the sizes of single values
    set(Arena::kActivations, layers * kept_a_layer);
  }
  return bytes;
}

LayoutBounds::CostBound LayoutBounds::of_sizes(const LayoutChoice& choice,
                                               const ParallelLayout& layout) const {
  const Hardware& hardware = request_.hardware;
  const BatchConfig& batch = request_.config.batch;
  const LayoutSizes sizes = sizes_of(request_, choice, layout);
  const int64_t length = request_.config.data.sequence_length;
  const auto tokens = static_cast<double>(batch.global_sequences * length);
  const auto micro_batches = static_cast<double>(sizes.micro_batches);
  double work =
      tokens * least_work_[index_of(choice.recompute)] / static_cast<double>(request_.ranks);
  if (choice.tensor > 1) {
    // 4 all-gathers and 4 reduce-scatters a layer. Those of backward hide
    // (passes/overlap/overlap_layers.h), in pairs those of forward, too.
    const GroupPlace place = place_group(choice.tensor, 1, request_.ranks, hardware);
    const auto bytes =
        static_cast<double>(choice.micro_sequences * length / choice.context *
                            request_.model.hidden_size * size_of(compute_dtype(precision_)));
    const double each = collective_seconds(CollectiveKind::kAllReduce, bytes, place, hardware);
    const double hidden = request_.config.parallel.overlap ? hardware.overlap : 0;
    work += (4 - (choice.pairs ? 4 : 2) * hidden) * each *
            static_cast<double>(request_.model.num_hidden_layers) /
            static_cast<double>(choice.pipeline) * micro_batches;
  }
  work *= 1 + static_cast<double>(choice.pipeline - 1) /
                  (micro_batches * static_cast<double>(choice.virtual_stages));
  const Exchange exchange = exchange_of(choice);
  const double shown = 1 - hardware.overlap;
  CostBound bound;
  bound.bytes = bytes_of(choice, sizes,
                         least_kept_[index_of(choice.recompute)] *
                             static_cast<double>(choice.micro_sequences * length) /
                             static_cast<double>(choice.context * choice.tensor));
  if (choice.zero == 1) {
    // The sums hide behind the last micro-batch alone.
    bound.seconds =
        std::max(work + shown * exchange.sums, work * (1 - 1 / micro_batches) + exchange.sums) +
        shown * exchange.gathers;
  } else if (choice.zero == 3) {
    const double gathers = kSlack * 2 * micro_batches * exchange.gathers;
    bound.seconds = std::max(work + shown * gathers, gathers);
  } else {
    bound.seconds = std::max(work, exchange.sums);
  }
  return bound;
}

LayoutBounds::CostBound LayoutBounds::of_layers(const LayoutChoice& choice,
                                                const ParallelLayout& layout) const {
  const LayoutSizes sizes = sizes_of(request_, choice, layout);
  const Layers layers = layers_of(choice);
  const double overlap = request_.hardware.overlap;
  const auto all = static_cast<double>(request_.model.num_hidden_layers);
  const auto micro_batches = static_cast<double>(sizes.micro_batches);
  const auto whole = [&](double Layers::PhaseSeconds::*what) {
    return all * (layers.layer.*what) + layers.rest.*what;
  };
  const double forward = whole(&Layers::PhaseSeconds::forward),
               backward = whole(&Layers::PhaseSeconds::backward);
  const int64_t stages = choice.pipeline;
  double work = 0, largest = all;  // layers of the stage that has most
  if (stages > 1) {
    const auto ranges =
        chunk_layers(request_.model.num_hidden_layers, stages * choice.virtual_stages);
    largest = 0;
    double before = 0;
    for (int64_t stage = 0; stage < stages; ++stage) {
      int64_t held = 0;
      for (size_t chunk = stage; chunk < ranges.size(); chunk += stages) {
        held += ranges[chunk].size();
      }
      largest = std::max(largest, static_cast<double>(held));
      work = std::max(work,
                      (micro_batches * static_cast<double>(held) + before) * layers.layer.both());
      before += static_cast<double>(ranges[static_cast<size_t>(stage)].size());
    }
    const auto v = static_cast<double>(choice.virtual_stages);
    work = std::max(work, kSlack * (forward + backward) / static_cast<double>(stages) *
                              (micro_batches + static_cast<double>(stages - 1) / v));
  } else if (choice.pairs && sizes.of_virtual_rank > 1) {
    const auto group = static_cast<double>(sizes.of_virtual_rank);
    work =
        micro_batches / group *
        (forward + backward + (group - 1) * std::max(backward, whole(&Layers::PhaseSeconds::pair)));
  } else {
    work = micro_batches * (forward + backward);
  }

  const Exchange exchange = exchange_of(choice);
  const auto data = static_cast<double>(choice.data);
  const double update = all / static_cast<double>(stages) * layers.layer.update / data;
  const double most_backward = largest * layers.layer.backward + layers.rest.backward;
  const double most_update = (largest * layers.layer.update + layers.rest.update) / data;
  CostBound bound;
  if (choice.zero == 1) {
    bound.seconds = work + exposed(exchange.sums, most_backward, overlap) + kSlack * update +
                    exposed(exchange.gathers, most_update, overlap);
  } else if (choice.zero == 3) {
    const double gathers = kSlack * 2 * micro_batches * exchange.gathers;
    bound.seconds = std::max(work + (1 - overlap) * gathers, gathers) + kSlack * update;
  } else {
    bound.seconds = std::max(work, exchange.sums) + kSlack * update;
  }
  bound.bytes = bytes_of(choice, sizes, layers.kept);
  if (stages == 1) bound.bytes[static_cast<size_t>(Arena::kWorkspace)] = layers.workspace;
  return bound;
}

}  // namespace skein
