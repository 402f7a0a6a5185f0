#include "skein/plan/plan.h"

#include <omp.h>

#include <algorithm>
#include <utility>

#include "skein/backends/backend.h"
#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/text/foreign_keys.h"
#include "skein/base/text/log.h"
#include "skein/base/text/nearest.h"
#include "skein/config/node_range.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "skein/model/decoder.h"
#include "skein/model/placement.h"
#include "skein/objects/url.h"
#include "skein/ops/ops.h"
#include "skein/ops/simd/cpu_kind.h"
#include "skein/plan/planned_run.h"
#include "skein/plan/process_bytes.h"
#include "skein/plan/this_machine.h"
#include "skein/replica/memory.h"
#include "skein/weights/init_source.h"

namespace skein {
namespace {

template <typename Value>
const StagePlan& largest_by(const std::vector<StagePlan>& stages, Value&& value) {
  return *std::max_element(stages.begin(), stages.end(),
                           [&](const auto& a, const auto& b) { return value(a) < value(b); });
}

// The memory limits of this machine, or of the described hardware.
std::vector<MemoryLimit> limits_of(const Hardware& hardware, bool is_described) {
  return is_described ? memory_limits(hardware) : read_host_memory().limits;
}

// Throws for a factor of an op that does not exist, which would have no effect.
void check_op_names(const Hardware& hardware) {
  std::vector<std::string_view> names;
  for (const OpDef* op : all_ops()) names.emplace_back(op->name);
  for (const auto& [name, factor] : hardware.op_factors) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string_view nearest = nearest_name(name, names);
    fail(ErrorCode::kUsage, "hardware '{}': [ops] {} is no op{}", hardware.name, name,
         nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest));
  }
}

int64_t process_bytes_of(const PlanRequest& request, const StepSpec& spec) {
  return process_bytes(request.config, spec, request.threads, !request.hardware.unified_memory);
}

}  // namespace

const StagePlan& Plan::largest() const {
  return largest_by(stages, [](const StagePlan& stage) { return stage.total_bytes(); });
}

const StagePlan& Plan::fullest() const {
  return largest_by(stages, [](const StagePlan& stage) { return stage.device_bytes(); });
}

const StagePlan& Plan::busiest() const {
  return largest_by(stages, [](const StagePlan& stage) { return sent_bytes(stage.wire); });
}

// An error here does not advise on launch.workers as training does, since a plan may be for other
// machines.
int64_t ranks_to_plan(const Config& config, int64_t asked) {
  if (asked > 0) return asked;
  if (config.plan.ranks > 0) return config.plan.ranks;
  const ParallelConfig& parallel = config.parallel;
  const int64_t launched = config.launch.workers * parse_node_range(config.launch.nodes)->most;
  const int64_t ranks = std::max<int64_t>(launched, configured_ranks(parallel));
  const int64_t replica = parallel.pipeline * parallel.context * parallel.tensor;
  if (parallel.data == 0 && ranks % replica != 0) {
    fail(ErrorCode::kUsage,
         "how many ranks? [parallel] pipeline {} x context {} x tensor {} needs a multiple of {}, "
         "and launch.workers is {}: expected --ranks N, or [plan] ranks, {} for one data rank",
         parallel.pipeline, parallel.context, parallel.tensor, replica, config.launch.workers,
         replica);
  }
  return ranks;
}

std::string leave_out_missing_tokenizer(Config& config) {
  std::string& tokenizer = config.data.tokenizer;
  std::error_code ignored;
  const bool is_missing = !is_object_url(tokenizer) &&
                          fs::status(tokenizer, ignored).type() == fs::file_type::not_found;
  if (tokenizer.empty() || !is_missing || !gives_vocab_size(config)) return "";
  return fmt::format(
      "data.tokenizer is '{}', which does not exist: planned without it, with the model's own "
      "vocab_size, and whether that is enough for it was not checked",
      std::exchange(tokenizer, ""));
}

DecoderConfig planned_model(const Config& config) {
  std::optional<int64_t> vocab_size;
  if (!config.data.tokenizer.empty())
    vocab_size = load_tokenizer(config.data.tokenizer, "data.tokenizer")->vocab_size();
  DecoderConfig model = model_of(config, vocab_size);
  const fs::path file = !config.model.hf_config.empty() ? fs::path(config.model.hf_config)
                        : config.model.init_from.empty()
                            ? fs::path()
                            : fs::path(config.model.init_from) / "config.json";
  const std::string unknown = unknown_keys_text(file.string(), model.unknown_keys);
  if (!unknown.empty()) log::warn("{}", unknown);
  check_names_of_source(config, model);
  return model;
}

std::optional<Hardware> planned_hardware(const Config& config, const std::string& asked) {
  if (!asked.empty()) return load_hardware(asked);
  if (config.plan.hardware.empty()) return std::nullopt;
  try {
    return load_hardware(config.plan.hardware);
  } catch (const Error& error) {
    fail(error.code(), "[plan] hardware: {}", error.what());
  }
}

std::string take_device_kind(Config& config, const Hardware& hardware) {
  if (config.device.kind != "auto" || hardware.device_kind.empty()) return "";
  config.device.kind = hardware.device_kind;
  return fmt::format("device.kind is auto: planned as {}, the devices of {}", config.device.kind,
                     hardware.name);
}

PlanRequest plan_request(const Config& config, int64_t ranks,
                         const std::optional<Hardware>& hardware) {
  PlanRequest request;
  request.config = config;
  request.model = planned_model(config);
  request.kernels = training_kernels(config);
  request.ranks = ranks_to_plan(config, ranks);
  request.hardware = hardware ? *hardware : describe_this_machine(config, request.ranks);
  request.limits = limits_of(request.hardware, hardware.has_value());
  check_op_names(request.hardware);
  const int64_t on_node = std::min(request.ranks, request.hardware.devices_per_node);
  request.threads = static_cast<int>(share_cores(config, on_node).threads);
  omp_set_num_threads(request.threads);
  return request;
}

PlanRequest memory_request(const Config& config, const DecoderConfig& model, int64_t ranks) {
  PlanRequest request;
  request.config = config;
  request.model = model;
  request.kernels = training_kernels(config);
  request.ranks = ranks;
  request.hardware = this_machine_unmeasured(config, ranks);
  request.threads = omp_get_max_threads();
  request.limits = limits_of(request.hardware, false);
  return request;
}

// Of the ranks of a node, how many compute at a time.
int64_t devices_at_once(const Hardware& hardware, int64_t on_node) {
  return hardware.concurrent_devices > 0 ? std::min(hardware.concurrent_devices, on_node) : on_node;
}

StepPrediction predict_step(const ParallelLayout& layout, const PipelineShape& shape,
                            const std::vector<StagePlan>& stages, const Hardware& hardware) {
  const int64_t ranks = layout.mesh.num_ranks();
  const int64_t on_node = std::min(ranks, hardware.devices_per_node);
  const int64_t at_once = devices_at_once(hardware, on_node);
  const auto turns = [&](int64_t devices) {
    return std::max(1.0, static_cast<double>(devices) / static_cast<double>(at_once));
  };
  const int64_t peers = std::min(on_node, ranks / shape.num_stages);  // of a stage, sharing a node

  StepPrediction result;
  StepTimes times;
  times.chunks.resize(static_cast<size_t>(shape.num_chunks()));
  if (ranks <= hardware.devices_per_node) {  // else stages have nodes of their own
    times.tasks_at_once = std::max(1.0, static_cast<double>(at_once) / static_cast<double>(peers));
  }
  for (const StagePlan& stage : stages) {
    double sums = 0, last_sum = 0, last_backward = 0;
    for (const ChunkPlan& chunk : stage.chunks) {
      const auto seconds = [&](const ProgramSeconds& program) {
        times.transfer_seconds = std::max(times.transfer_seconds, program.transfer);
        return program.compute * turns(peers) + program.blocking;
      };
      ChunkSeconds& both = times.chunks[static_cast<size_t>(chunk.chunk)];
      both.forward = seconds(chunk.forward);
      both.backward = seconds(chunk.backward);
      both.forward_beside =
          std::max(0.0, chunk.pair.compute * turns(peers) + chunk.pair.blocking - both.backward);
      sums += chunk.last_backward.hideable;
      last_sum = std::max(last_sum, chunk.last_backward.last_hideable);
      last_backward += both.backward;
    }
    const auto exposed = [&](double communication, double last, double compute) {
      return std::max({(1 - hardware.overlap) * communication, communication - compute, last});
    };
    const ProgramSeconds& update = stage.update;
    const double compute = update.compute * turns(on_node);
    times.update_seconds = std::max(
        times.update_seconds, exposed(sums, last_sum, last_backward) + compute + update.blocking +
                                  exposed(update.hideable, update.last_hideable, compute));
  }
  result.timeline = simulate(shape, times);
  result.update_seconds = times.update_seconds;
  result.step_seconds = result.timeline.step_seconds;
  return result;
}

namespace {

// Stages whose ranks exchange everything in no time.
std::vector<StagePlan> without_communication(std::vector<StagePlan> stages) {
  const auto silence = [](ProgramSeconds& program) { program = {.compute = program.compute}; };
  for (StagePlan& stage : stages) {
    for (ChunkPlan& chunk : stage.chunks) {
      for (ProgramSeconds* program :
           {&chunk.forward, &chunk.backward, &chunk.last_backward, &chunk.pair}) {
        silence(*program);
      }
    }
    silence(stage.update);
  }
  return stages;
}

}  // namespace

void predict(Plan& plan, const PlanRequest& request, const StepSpec& spec) {
  const auto predicted = [&](const std::vector<StagePlan>& stages) {
    return predict_step(plan.layout, spec.pipeline(), stages, plan.hardware);
  };
  plan.step = predicted(plan.stages);
  plan.step.exposed_seconds =
      plan.step.step_seconds - predicted(without_communication(plan.stages)).step_seconds;
  const Config& config = request.config;
  plan.in_pairs = spec.in_pairs;
  plan.idle_pairs = idle_pairs(config, plan.layout);
  plan.idle_zero = idle_zero(config, plan.layout);
  plan.notes = decoder_notes(spec.model, plan.layout.mesh, spec.sequence_length);
  plan.fp8_as_bf16 = config.precision.mode == "fp8" && plan.hardware.fp8_flops_per_s == 0 &&
                     !plan.hardware.unified_memory;  // a CPU multiplies these in bf16
  const auto tokens =
      static_cast<double>(config.batch.global_sequences * config.data.sequence_length);
  plan.tokens_per_second = tokens / plan.step.step_seconds;
  plan.matmul = plan.hardware.matmul(compute_dtype(spec.update.precision));
  const int64_t on_node = std::min(plan.ranks(), plan.hardware.devices_per_node);
  const double of_device =
      static_cast<double>(devices_at_once(plan.hardware, on_node)) / static_cast<double>(on_node);
  plan.matmul.flops_per_s *= of_device;  // of a rank, where they take turns
  plan.matmul.peak_flops_per_s *= of_device;
  const double flops_per_rank =
      training_flops_per_token(request.model, config.data.sequence_length) *
      plan.tokens_per_second / static_cast<double>(plan.ranks());
  plan.peak_utilization = flops_per_rank / plan.matmul.peak_flops_per_s;
  plan.matmul_ceiling_share = flops_per_rank / plan.matmul.flops_per_s;
  int64_t checkpoint_bytes = 0;
  for (const StagePlan& stage : plan.stages) checkpoint_bytes += stage.checkpoint_bytes;
  plan.run = run_totals(config, request.model, plan.step.step_seconds, checkpoint_bytes);
}

namespace {

// Of a stage, the rank with this coordinate on the data axis.
StagePlan plan_share(const PlanRequest& request, const PlannedRun& run, int64_t stage,
                     int64_t data_rank, const TrainingGraphs& whole, const Pricing& pricing) {
  const StepSpec spec = run.spec_of(stage, data_rank);
  const TrainingGraphs graphs = stage_graphs(whole, spec);
  StagePlan plan = plan_stage(spec, graphs, request.kernels, pricing);
  plan.process_bytes = process_bytes_of(request, spec);
  const int64_t peers = request.ranks / spec.pipeline().num_stages;
  plan.rank_snapshot_bytes = rank_snapshot_bytes(
      spec, graphs, run.rank_of(stage, 0), std::min(request.hardware.devices_per_node, peers));
  return plan;
}

}  // namespace

Plan make_plan(const PlanRequest& request) {
  const PlannedRun run(request.config, request.model, request.ranks);
  Plan plan;
  plan.layout = run.layout();
  plan.num_parameters = num_parameters(request.model);
  plan.hardware = request.hardware;
  plan.threads = request.threads;
  const Backend& backend = planned_backend(request.config);
  const bool is_cpu = !backend.has_own_memory && !backend.compiles;
  plan.kernels = is_cpu ? cpu_kind() : std::string(backend.kind);
  const std::vector<int64_t> shares = plan.layout.shares().kinds();
  const StepSpec spec = run.spec_of(0, shares.front());
  const Pricing pricing(request.hardware, plan.layout.mesh, compute_dtype(spec.update.precision));
  for (const int64_t data_rank : shares) {
    const TrainingGraphs whole = whole_graphs(run.spec_of(0, data_rank));
    for (int64_t stage = 0; stage < spec.pipeline().num_stages; ++stage) {
      StagePlan share = plan_share(request, run, stage, data_rank, whole, pricing);
      if (data_rank == shares.front()) {
        plan.stages.push_back(std::move(share));
      } else {
        plan.stages[static_cast<size_t>(stage)].smaller_shares.push_back(std::move(share));
      }
    }
  }
  const int64_t copies_every = request.config.checkpoint.memory_every_steps;
  if ((plan.ranks() > 1 || request.config.launch.supervise) && copies_every != 0) {
    const bool alone =
        request.config.launch.nodes == "1" && plan.ranks() <= request.hardware.devices_per_node;
    plan.copies = kReplicaSlots * (alone ? 1 : 2);
    plan.needs_copies = copies_every > 0;
  }
  plan.memory_margin = request.memory_margin;
  plan.memory = memory_fits(plan, request.limits);
  predict(plan, request, spec);
  return plan;
}

StagePlan plan_of_rank(const PlanRequest& request, int64_t rank) {
  const StepSpec spec = PlannedRun(request.config, request.model, request.ranks).spec_of_rank(rank);
  const Pricing pricing(request.hardware, spec.layout.mesh, compute_dtype(spec.update.precision));
  const TrainingGraphs graphs = training_graphs(spec);
  StagePlan plan = plan_stage(spec, graphs, request.kernels, pricing);
  plan.process_bytes = process_bytes_of(request, spec);
  const ProgramSet programs = plan_training(graphs, spec, request.kernels);
  plan.wire = planned_wire(programs, program_runs(spec, programs), rank);  // of this rank
  return plan;
}

}  // namespace skein
