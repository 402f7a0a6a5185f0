#include "skein/train/step_programs.h"

#include "skein/model/llama/llama.h"
#include "skein/ops/ops.h"
#include "skein/passes/differentiate.h"
#include "skein/passes/hoist_transient.h"
#include "skein/passes/lower.h"
#include "skein/passes/plan_memory.h"

namespace skein {
namespace {

bool is_norm(std::string_view parameter) { return parameter.ends_with("norm.weight"); }

LlamaOptions llama_options(const StepSpec& spec) {
  LlamaOptions options;
  options.compute_dtype = compute_dtype(spec.update.precision);
  options.sequences = spec.micro_sequences;
  options.sequence_length = spec.sequence_length;
  return options;
}

ProgramSet inference_programs(const LlamaConfig& model, LlamaOptions options,
                              const KernelTable& kernels) {
  Graph graph{Mesh()};  // one sequence on one rank: nothing is split
  build_llama(graph, model, options);
  lower(graph);
  return plan_memory({{&graph, "forward", "", ""}}, kernels);
}

}  // namespace

void refuse_parallel(const Config& config) {
  const ParallelConfig& parallel = config.parallel;
  const std::pair<const char*, int64_t> degrees[] = {
      {"launch.workers", config.launch.workers},
      {"parallel.data", parallel.data},
      {"parallel.tensor", parallel.tensor},
      {"parallel.pipeline", parallel.pipeline},
      {"parallel.context", parallel.context},
      {"parallel.virtual_stages", parallel.virtual_stages}};
  for (const auto& [key, degree] : degrees) {
    if (degree > 1) {
      fail(ErrorCode::kUnsupported, "{} is {}: several workers are not built yet, set it to 1", key,
           degree);
    }
  }
  if (config.launch.nodes != "1") {
    fail(ErrorCode::kUnsupported,
         "launch.nodes is \"{}\": several nodes are not built yet, set it to \"1\"",
         config.launch.nodes);
  }
}

LlamaConfig model_of(const Config& config, std::optional<int64_t> tokenizer_vocab_size) {
  const Json json = hf_config_json(config.model);
  const std::string& file = config.model.hf_config;
  try {
    LlamaConfig model =
        parse_llama_config(json, file.empty() ? "[model]" : file, tokenizer_vocab_size);
    if (config.data.sequence_length > model.max_position_embeddings) {
      fail(ErrorCode::kUsage,
           "data.sequence_length is {}, the model has max_position_embeddings = {}: expected at "
           "most "
           "that; what is exported would not read longer texts",
           config.data.sequence_length, model.max_position_embeddings);
    }
    return model;
  } catch (const Error& error) {
    const bool is_mistake =
        error.code() == ErrorCode::kInvalid || error.code() == ErrorCode::kNotFound;
    throw Error(is_mistake ? ErrorCode::kUsage : error.code(), error.what());
  }
}

std::unique_ptr<Device> training_device(const Config& config) {
  DeviceOptions options;
  options.kind = config.device.kind == "auto" ? "cpu" : config.device.kind;
  options.threads = static_cast<int>(config.device.threads);
  return make_device(options, cpu_kernels());
}

StepSpec step_spec(const Config& config, const LlamaConfig& model) {
  StepSpec spec;
  spec.model = model;
  spec.micro_sequences = config.batch.micro_sequences;
  spec.sequence_length = config.data.sequence_length;
  spec.recompute = parse_recompute_policy(config.memory.recompute);
  UpdateOptions& update = spec.update;
  update.precision = parse_precision(config.precision.mode);
  update.moments = config.precision.moments == "bf16" ? DType::kBF16 : DType::kF32;
  update.beta1 = config.optimizer.beta1;
  update.beta2 = config.optimizer.beta2;
  update.epsilon = config.optimizer.epsilon;
  update.weight_decay = config.optimizer.weight_decay;
  update.clip_norm = config.optimizer.clip_norm;
  update.seed = static_cast<uint64_t>(config.run.seed);
  if (!config.optimizer.decay_norms) {
    update.decays = [](std::string_view parameter) { return !is_norm(parameter); };
  }
  return spec;
}

TrainingGraphs training_graphs(const StepSpec& spec) {
  TrainingGraphs graphs{Graph(spec.mesh), Graph(spec.mesh)};
  const ValueId loss = build_llama(graphs.training, spec.model, llama_options(spec));
  differentiate(graphs.training, loss);
  hoist_transient(graphs.training);
  append_update(graphs.training, spec.update);
  recompute(graphs.training, spec.recompute);
  lower(graphs.training);

  build_llama(graphs.evaluation, spec.model, llama_options(spec));
  lower(graphs.evaluation);
  return graphs;
}

ProgramSet plan_training(const TrainingGraphs& graphs, const KernelTable& kernels) {
  return plan_memory({{&graphs.training}, {&graphs.evaluation, "evaluate", "", ""}}, kernels);
}

ProgramSet scoring_programs(const LlamaConfig& model, DType compute_dtype, int64_t sequence_length,
                            const KernelTable& kernels) {
  LlamaOptions options;
  options.purpose = LlamaPurpose::kScore;
  options.compute_dtype = compute_dtype;
  options.sequence_length = sequence_length;
  return inference_programs(model, options, kernels);
}

ProgramSet generation_programs(const LlamaConfig& model, DType compute_dtype,
                               int64_t sequence_length, const KernelTable& kernels) {
  LlamaOptions options;
  options.purpose = LlamaPurpose::kGenerate;
  options.compute_dtype = compute_dtype;
  options.sequence_length = sequence_length;
  return inference_programs(model, options, kernels);
}

}  // namespace skein
