#include "skein/train/plan.h"

#include "skein/base/units.h"
#include "skein/checkpoint/checkpoint_writer.h"
#include "skein/data/batch.h"
#include "skein/data/loader.h"
#include "skein/data/tokenizer.h"
#include "skein/model/llama/parameters.h"
#include "skein/ops/linear/matmul_ceiling.h"
#include "skein/runtime/copy_rate.h"
#include "skein/train/training_state.h"

namespace skein {
namespace {

int64_t arena(const Plan& plan, Arena which) { return plan.arena_bytes[static_cast<int>(which)]; }

}  // namespace

int64_t Plan::total_bytes() const {
  int64_t total = snapshot_bytes + loader_bytes;
  for (const int64_t bytes : arena_bytes) total += bytes;
  return total;
}

Plan make_plan(const Config& config, const LlamaConfig& model, const KernelTable& kernels,
               const HardwareRates& rates) {
  const int64_t ranks = std::max<int64_t>(config.launch.workers, configured_ranks(config.parallel));
  const ParallelLayout layout = parallel_layout(config, model, ranks, 0);
  const StepSpec spec = step_spec(config, model, layout);
  const TrainingGraphs graphs = training_graphs(spec);
  const ProgramSet programs = plan_training(graphs, spec, kernels);

  Plan plan;
  plan.ranks = layout.mesh.num_ranks();
  plan.num_parameters = num_parameters(model);
  plan.arena_bytes = programs.arena_bytes;
  std::vector<TensorSpec> specs;
  for (const StateTensor& tensor : state_tensors(graphs.training)) specs.push_back(tensor.spec);
  plan.snapshot_bytes = CheckpointWriter::snapshot_bytes(specs);
  plan.loader_bytes = LoaderOptions{}.num_batches *
                      Batch::bytes(config.batch.global_sequences / layout.data_degree(),
                                   config.data.sequence_length);

  plan.estimate = estimate_step(programs, spec.micro_batches, rates);
  const auto tokens =
      static_cast<double>(config.batch.global_sequences * config.data.sequence_length);
  plan.tokens_per_second = tokens / plan.estimate.step_seconds;
  plan.model_flops_utilization = training_flops_per_token(model, config.data.sequence_length) *
                                 plan.tokens_per_second / rates.flops_per_s;
  return plan;
}

Plan make_plan(const Config& config) {
  // A plan needs no tokenizer; where one is there, it gives the vocabulary that training would use.
  std::optional<int64_t> vocab_size;
  if (!config.data.tokenizer.empty())
    vocab_size = Tokenizer::load(config.data.tokenizer)->vocab_size();
  const LlamaConfig model = model_of(config, vocab_size);
  const DType dtype = compute_dtype(parse_precision(config.precision.mode));
  const auto device = training_device(config);
  HardwareRates rates;
  rates.flops_per_s = measure_matmul_ceiling_flops(dtype, 0.15);
  rates.bytes_per_s = measure_copy_bytes_per_s(0.05);
  return make_plan(config, model, device->kernels(), rates);
}

OrderedJson plan_to_json(const Plan& plan) {
  OrderedJson json;
  json["ranks"] = plan.ranks;
  json["parameters"] = plan.num_parameters;
  json["per_rank"] = {{"weights_bytes", arena(plan, Arena::kWeights)},
                      {"gradients_bytes", arena(plan, Arena::kGradients)},
                      {"optimizer_bytes", arena(plan, Arena::kOptimizer)},
                      {"activations_bytes", arena(plan, Arena::kActivations)},
                      {"workspace_bytes", arena(plan, Arena::kWorkspace)},
                      {"inputs_bytes", arena(plan, Arena::kInputs)},
                      {"snapshot_bytes", plan.snapshot_bytes},
                      {"loader_bytes", plan.loader_bytes},
                      {"total_bytes", plan.total_bytes()}};
  json["step_seconds"] = plan.estimate.step_seconds;
  json["tokens_per_second"] = plan.tokens_per_second;
  json["model_flops_utilization"] = plan.model_flops_utilization;
  json["collectives"] = OrderedJson::array();
  return json;
}

std::string plan_to_text(const Plan& plan) {
  std::string text = fmt::format("{} parameters on {} rank{}\n\nMemory per rank\n",
                                 format_count(static_cast<double>(plan.num_parameters)), plan.ranks,
                                 plan.ranks == 1 ? "" : "s");
  const auto line = [&](std::string_view what, int64_t bytes, std::string_view note) {
    text += fmt::format("  {:<12} {:>18L} B  {:>9}  {}\n", what, bytes, format_bytes(bytes), note);
  };
  line("weights", arena(plan, Arena::kWeights), "");
  line("gradients", arena(plan, Arena::kGradients), "fp32 sums");
  line("optimizer", arena(plan, Arena::kOptimizer), "moments, master weights");
  line("activations", arena(plan, Arena::kActivations), "kept from forward to backward");
  line("workspace", arena(plan, Arena::kWorkspace), "everything short-lived, kernels' scratch");
  line("inputs", arena(plan, Arena::kInputs), "the micro-batch, scalars");
  line("snapshot", plan.snapshot_bytes, "host: what saving needs");
  line("loader", plan.loader_bytes, "host: batches made ahead");
  line("total", plan.total_bytes(), "");
  text +=
      fmt::format("\nPredicted: {} a step, {} tokens/s, {:.0f} % of the matrix-product ceiling\n",
                  format_duration(plan.estimate.step_seconds), format_count(plan.tokens_per_second),
                  100 * plan.model_flops_utilization);
  return text;
}

}  // namespace skein
