#include "skein/base/text/units.h"
#include "skein/base/text/visible_text.h"
#include "skein/plan/memory_text.h"
#include "skein/plan/plan.h"

namespace skein {
namespace {

int64_t arena(const StagePlan& plan, Arena which) {
  return plan.arena_bytes[static_cast<size_t>(which)];
}

OrderedJson bytes_to_json(const StagePlan& stage) {
  return {{"weights_bytes", arena(stage, Arena::kWeights)},
          {"gradients_bytes", arena(stage, Arena::kGradients)},
          {"optimizer_bytes", arena(stage, Arena::kOptimizer)},
          {"activations_bytes", arena(stage, Arena::kActivations)},
          {"host_activations_bytes", arena(stage, Arena::kHostActivations)},
          {"workspace_bytes", arena(stage, Arena::kWorkspace)},
          {"inputs_bytes", arena(stage, Arena::kInputs)},
          {"rounded_bytes", arena(stage, Arena::kRounded)},
          {"snapshot_bytes", stage.snapshot_bytes},
          {"loader_bytes", stage.loader_bytes},
          {"device_bytes", stage.device_bytes()},
          {"host_bytes", stage.host_bytes()},
          {"process_bytes", stage.process_bytes},
          {"total_bytes", stage.total_bytes()}};
}

OrderedJson mesh_to_json(const Mesh& mesh) {
  OrderedJson json = OrderedJson::object();
  for (const MeshAxis& axis : mesh.axes()) json[axis.name] = axis.size;
  return json;
}

OrderedJson virtual_ranks_to_json(const Branches& shares, int64_t width) {
  return {{"all", width}, {"most_of_a_rank", shares.most()}, {"least_of_a_rank", shares.least()}};
}

OrderedJson collectives_to_json(const StagePlan& stage) {
  OrderedJson lines = wire_to_json(stage.wire);
  size_t i = 0;
  for (const auto& [key, use] : stage.wire) {
    const auto seconds = stage.collective_seconds.find(key);
    lines[i++]["seconds"] = seconds == stage.collective_seconds.end() ? 0.0 : seconds->second;
  }
  return lines;
}

std::string stages_text(const Plan& plan) {
  std::string text = fmt::format("\n{:>7} {:>10} {:>11} {:>12} {:>12} {:>12}\n", "stage", "device",
                                 "sent a step", "forward", "backward", "update");
  for (const StagePlan& stage : plan.stages) {
    double forward = 0, backward = 0;
    for (const ChunkPlan& chunk : stage.chunks) {
      forward += chunk.forward.compute + chunk.forward.blocking;
      backward += chunk.backward.compute + chunk.backward.blocking;
    }
    text += fmt::format("{:>7} {:>10} {:>11} {:>12} {:>12} {:>12}\n", stage.stage,
                        format_bytes(stage.device_bytes()), format_bytes(sent_bytes(stage.wire)),
                        format_short_duration(forward), format_short_duration(backward),
                        format_short_duration(stage.update.compute + stage.update.blocking));
  }
  return text;
}

std::string wire_text(const StagePlan& stage) {
  std::string text =
      fmt::format("\nOn the wire, a step of the rank that sends most (stage {})\n", stage.stage);
  for (const auto& [key, use] : stage.wire) {
    text +=
        fmt::format("  {:<12} {:<15} {:>6} ranks {:>7} calls {:>10} {:>11}\n", key.first,
                    collective_name(key.second), use.ranks, use.calls, format_bytes(use.sent_bytes),
                    format_short_duration(stage.collective_seconds.at(key)));
  }
  return text;
}

OrderedJson memory_to_json(const Plan& plan) {
  OrderedJson list = OrderedJson::array();
  for (const MemoryFit& fit : plan.memory) {
    list.push_back({{"memory", fit.memory},
                    {"limit", fit.limit},
                    {"ranks", fit.ranks},
                    {"needed_bytes", fit.needed_bytes},
                    {"available_bytes", fit.available_bytes},
                    {"margin_bytes", fit.margin_bytes},
                    {"fits", fit.fits()}});
  }
  return list;
}

OrderedJson run_to_json(const RunTotals& run) {
  OrderedJson json = {{"steps", run.steps},
                      {"tokens_per_step", run.tokens_per_step},
                      {"tokens", run.tokens},
                      {"seconds", run.seconds},
                      {"checkpoint_bytes", run.checkpoint_bytes},
                      {"checkpoints", run.num_checkpoints},
                      {"permanent_checkpoints", run.num_permanent},
                      {"disk_bytes", run.disk_bytes},
                      {"initial_param_norm", nullptr}};
  if (run.initial_param_norm > 0) json["initial_param_norm"] = run.initial_param_norm;
  return json;
}

// Of pipelines the steps' difference alone: their ranks wait for each other's work as well.
std::string exchange_text(const Plan& plan) {
  const StepPrediction& step = plan.step;
  std::string text = fmt::format("  {} of it, {:.0f} %, for exchange that is beside no computation",
                                 format_short_duration(step.exposed_seconds),
                                 100 * step.exposed_seconds / step.step_seconds);
  if (plan.stages.size() == 1) {
    double seconds = 0;
    for (const auto& [key, of_key] : plan.stages.front().collective_seconds) seconds += of_key;
    text += fmt::format(" (of {} in all)", format_short_duration(seconds));
  }
  return text + "\n";
}

std::string speed_text(const Plan& plan) {
  const auto all_ranks = [&](double flops_per_s) {
    return format_count(flops_per_s * static_cast<double>(plan.ranks()));
  };
  std::string text = fmt::format(
      "\nPredicted: {} a step, {} tokens/s{}, at the speed of {}\n"
      "  {:.0f} % of the ceiling that large products reach ({}FLOP/s, all ranks), {} ({}FLOP/s)\n",
      format_short_duration(plan.step.step_seconds), format_count(plan.tokens_per_second),
      plan.hardware.unified_memory ? " on idle cores" : "", plan.hardware.name,
      100 * plan.matmul_ceiling_share, all_ranks(plan.matmul.flops_per_s),
      fmt::format(
          fmt::runtime(plan.hardware.unified_memory ? "{:.0f} % of the most that was measured"
                                                    : "MFU {:.0f} %, of the peak"),
          100 * plan.peak_utilization),
      all_ranks(plan.matmul.peak_flops_per_s));
  if (plan.fp8_as_bf16) {
    text +=
        "  products of 8-bit operands are counted at the rate of bf16: the hardware's file has "
        "no fp8.flops_per_s\n";
  }
  if (!plan.hardware.note.empty()) text += fmt::format("  {}\n", visible_line(plan.hardware.note));
  if (plan.ranks() > 1) text += exchange_text(plan);
  if (const std::string told = unequal_shares(plan.layout); !told.empty()) {
    text += fmt::format("  {}\n", told);
  }
  for (const std::string& told : plan.notes) text += fmt::format("  {}\n", told);
  for (const std::string& told : {plan.idle_zero, plan.idle_pairs}) {
    if (!told.empty()) text += fmt::format("  {}\n", told);
  }
  if (plan.stages.size() > 1) {
    text += fmt::format("  the pipeline idles for {:.1f} % of the time up to the update\n",
                        100 * plan.step.timeline.idle_share());
  }
  return text;
}

OrderedJson evaluations_to_json(const std::vector<PlannedEvaluation>& evaluations) {
  OrderedJson list = OrderedJson::array();
  for (const PlannedEvaluation& planned : evaluations) {
    list.push_back({{"tasks", planned.tasks}, {"every_steps", planned.every_steps}});
    if (!planned.unknown.empty()) {
      list.back()["unknown"] = planned.unknown;
      continue;
    }
    list.back().update({{"documents", planned.num_documents},
                        {"texts", planned.num_texts},
                        {"tokens", planned.num_tokens},
                        {"rows", planned.num_rows},
                        {"times", planned.times},
                        {"seconds_each", planned.seconds_each}});
  }
  return list;
}

std::string evaluations_text(const std::vector<PlannedEvaluation>& evaluations) {
  std::string text;
  for (const PlannedEvaluation& planned : evaluations) {
    const std::string when = planned.every_steps > 0
                                 ? fmt::format("every {} steps", planned.every_steps)
                                 : std::string("at the end");
    if (!planned.unknown.empty()) {
      text += fmt::format("  evaluation   {} {}: its time is not known: {}\n", planned.tasks, when,
                          visible_line(planned.unknown));
      continue;
    }
    text += fmt::format(
        "  evaluation   {} {}: {} in {}, {} each time, {} in all\n", planned.tasks, when,
        counted(planned.num_texts, "text"), counted(planned.num_rows, "row"),
        format_short_duration(planned.seconds_each),
        format_short_duration(planned.seconds_each * static_cast<double>(planned.times)));
  }
  return text;
}

std::string run_text(const RunTotals& run) {
  std::string text =
      fmt::format("\nThe run: {} of {} tokens, {} tokens in all\n", counted(run.steps, "step"),
                  format_count(static_cast<double>(run.tokens_per_step)),
                  format_count(static_cast<double>(run.tokens)));
  text += fmt::format("  time         {}, beside saving and validating\n",
                      format_short_duration(run.seconds));
  text += fmt::format("  disk         {}: {} of {} at once, {} of them for good\n",
                      format_bytes(run.disk_bytes), counted(run.num_checkpoints, "checkpoint"),
                      format_bytes(run.checkpoint_bytes), run.num_permanent);
  if (run.initial_param_norm > 0) {
    text += fmt::format("  param_norm   about {:.4g} at the first step\n", run.initial_param_norm);
  }
  return text;
}

}  // namespace

OrderedJson plan_to_json(const Plan& plan, const std::optional<StagePlan>& of_rank) {
  OrderedJson json;
  json["ranks"] = plan.ranks();
  json["parameters"] = plan.num_parameters;
  json["mesh"] = mesh_to_json(plan.layout.mesh);
  json["virtual_stages"] = plan.layout.virtual_stages;
  json["virtual_ranks"] = virtual_ranks_to_json(plan.layout.shares(), plan.layout.reduction_width);
  json["zero"] = plan.layout.zero;
  json["pairs"] = plan.in_pairs;
  json["hardware"] = plan.hardware.name;
  json["kernels"] = plan.kernels;
  json["per_rank"] = bytes_to_json(plan.largest());
  json["fits"] = all_fit(plan.memory);
  json["memory"] = memory_to_json(plan);
  json["step_seconds"] = plan.step.step_seconds;
  json["update_seconds"] = plan.step.update_seconds;
  json["exposed_seconds"] = plan.step.exposed_seconds;
  json["bubble_fraction"] = plan.step.timeline.bubble_fraction;
  json["speed_of"] = plan.hardware.name;
  if (!plan.hardware.note.empty()) json["speed_note"] = plan.hardware.note;
  json["tokens_per_second"] = plan.tokens_per_second;
  json["model_flops_utilization"] = plan.peak_utilization;  // former name, kept for readers
  json["peak_utilization"] = plan.peak_utilization;
  json["matmul_ceiling_share"] = plan.matmul_ceiling_share;
  json["run"] = run_to_json(plan.run);
  if (!plan.evaluations.empty()) json["evaluations"] = evaluations_to_json(plan.evaluations);
  json["copies_bytes"] = plan.copies * plan.largest().snapshot_bytes;
  if (of_rank) json["rank"] = bytes_to_json(*of_rank);
  json["collectives"] = collectives_to_json(of_rank ? *of_rank : plan.busiest());
  json["stages"] = OrderedJson::array();
  for (const StagePlan& stage : plan.stages) {
    OrderedJson line = bytes_to_json(stage);
    line["sent_bytes"] = sent_bytes(stage.wire);
    json["stages"].push_back(std::move(line));
  }
  return json;
}

std::string plan_to_text(const Plan& plan) {
  std::string text = fmt::format("{} parameters on {}: {}{}\n\n",
                                 format_count(static_cast<double>(plan.num_parameters)),
                                 counted(plan.ranks(), "rank"), plan.layout.mesh.to_string(),
                                 plan.in_pairs ? ", micro-batches in pairs" : "");
  text += memory_text(plan);
  if (plan.stages.size() > 1) text += stages_text(plan);
  if (!plan.busiest().wire.empty()) text += wire_text(plan.busiest());
  text += speed_text(plan);
  text += run_text(plan.run);
  text += evaluations_text(plan.evaluations);
  return text;
}

}  // namespace skein
