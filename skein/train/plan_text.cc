#include "skein/base/units.h"
#include "skein/train/plan.h"

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
          {"snapshot_bytes", stage.snapshot_bytes},
          {"loader_bytes", stage.loader_bytes},
          {"device_bytes", stage.device_bytes()},
          {"total_bytes", stage.total_bytes()}};
}

OrderedJson mesh_to_json(const Mesh& mesh) {
  OrderedJson json = OrderedJson::object();
  for (const MeshAxis& axis : mesh.axes()) json[axis.name] = axis.size;
  return json;
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

std::string memory_text(const StagePlan& stage) {
  std::string text;
  const auto line = [&](std::string_view what, int64_t bytes, std::string_view note) {
    text += fmt::format("  {:<12} {:>18L} B  {:>9}  {}\n", what, bytes, format_bytes(bytes), note);
  };
  line("weights", arena(stage, Arena::kWeights), "");
  line("gradients", arena(stage, Arena::kGradients), "fp32 sums");
  line("optimizer", arena(stage, Arena::kOptimizer),
       stage.on_host[static_cast<size_t>(Arena::kOptimizer)]
           ? "moments, master weights: in host memory"
           : "moments, master weights");
  line("activations", arena(stage, Arena::kActivations), "kept from forward to backward");
  if (arena(stage, Arena::kHostActivations) > 0) {
    line("", arena(stage, Arena::kHostActivations), "kept so in host memory");
  }
  line("workspace", arena(stage, Arena::kWorkspace), "everything short-lived, kernels' scratch");
  line("inputs", arena(stage, Arena::kInputs), "the micro-batch, scalars");
  line("snapshot", stage.snapshot_bytes, "host: what saving needs");
  line("loader", stage.loader_bytes, "host: batches made ahead");
  line("total", stage.total_bytes(), "");
  return text;
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
                        format_duration(forward), format_duration(backward),
                        format_duration(stage.update.compute + stage.update.blocking));
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
                    format_duration(stage.collective_seconds.at(key)));
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
  json["zero"] = plan.layout.zero;
  json["hardware"] = plan.hardware.name;
  json["per_rank"] = bytes_to_json(plan.largest());
  json["fits"] = plan.fullest().device_bytes() <= plan.hardware.memory_bytes;
  json["step_seconds"] = plan.step.step_seconds;
  json["update_seconds"] = plan.step.update_seconds;
  json["bubble_fraction"] = plan.step.timeline.bubble_fraction;
  json["tokens_per_second"] = plan.tokens_per_second;
  json["model_flops_utilization"] = plan.model_flops_utilization;
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
  const int64_t ranks = plan.ranks();
  std::string text =
      fmt::format("{} parameters on {} rank{}: {}\n{}\n\nMemory per rank{}\n",
                  format_count(static_cast<double>(plan.num_parameters)), ranks,
                  ranks == 1 ? "" : "s", plan.layout.mesh.to_string(), plan.hardware.name,
                  plan.stages.size() > 1 ? ", of the largest stage" : "");
  text += memory_text(plan.largest());
  const int64_t spare = plan.hardware.memory_bytes - plan.fullest().device_bytes();
  text += spare >= 0 ? fmt::format("  fits {} of device memory, {} to spare\n",
                                   format_bytes(plan.hardware.memory_bytes), format_bytes(spare))
                     : fmt::format("  does not fit {} of device memory: too large by {}\n",
                                   format_bytes(plan.hardware.memory_bytes), format_bytes(-spare));
  if (plan.stages.size() > 1) text += stages_text(plan);
  if (!plan.busiest().wire.empty()) text += wire_text(plan.busiest());
  text += fmt::format("\nPredicted: {} a step, {} tokens/s, {:.0f} % of the {}\n",
                      format_duration(plan.step.step_seconds), format_count(plan.tokens_per_second),
                      100 * plan.model_flops_utilization,
                      ranks == 1 ? "matrix-product ceiling" : "peak of all ranks");
  if (plan.stages.size() > 1) {
    text += fmt::format("The pipeline idles for {:.1f} % of its work.\n",
                        100 * plan.step.timeline.bubble_fraction);
  }
  return text;
}

}  // namespace skein
