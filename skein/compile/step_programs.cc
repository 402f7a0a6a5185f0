#include "skein/compile/step_programs.h"

#include <bit>
#include <list>

#include "skein/base/text/divisors.h"
#include "skein/compile/configured_compiler.h"
#include "skein/compile/program_runs.h"
#include "skein/config/batches.h"
#include "skein/config/parameter_rules.h"
#include "skein/model/decoder.h"
#include "skein/model/rotary.h"
#include "skein/ops/fold/fold.h"
#include "skein/ops/ops.h"
#include "skein/ops/simd/cpu_kind.h"
#include "skein/passes/memory/plan_memory.h"
#include "skein/passes/overlap/pair_programs.h"
#include "skein/passes/use_fp8.h"
#include "skein/weights/model_source.h"

namespace skein {
namespace {

// Whether the model is that of model.init_from.
bool takes_source(const ModelConfig& model) {
  return model.hf_config.empty() && !model.init_from.empty();
}

Json model_json(const ModelConfig& model) {
  const bool of_source = takes_source(model);
  if (of_source) require_init_from(model.init_from);
  Json json =
      hf_config_json(model, of_source ? source_model_json(model.init_from) : Json::object());
  if (model.hf_config.empty() && !of_source) complete_inline_model(json);
  prefer_given_rope(model.inline_keys, json);
  return json;
}

void check_sequence_length(int64_t length, const DecoderConfig& model) {
  if (length > model.max_position_embeddings) {
    fail(ErrorCode::kUsage,
         "data.sequence_length is {}, the model has max_position_embeddings = {}: expected at most "
         "that; the exported model would not read longer texts",
         length, model.max_position_embeddings);
  }
  const TextLimit limit = text_limit(model);
  if (length <= limit.tokens) return;
  fail(ErrorCode::kUsage,
       "data.sequence_length is {}, and the model has {} = {}: expected at most {}, where every "
       "token attends to all before it; Skein has no attention over a shorter window. Set "
       "data.sequence_length={}, or model.sliding_window=0 for a model without the window, which "
       "computes something else beyond it",
       length, limit.key, limit.tokens, limit.tokens, limit.tokens);
}

// An encoder reads a next token off its input; a decoder sees nothing behind a masked one.
void check_objective(const Config& config, const DecoderConfig& model) {
  const bool is_masked = config.data.objective == "masked";
  if (is_masked == model.family->is_encoder) return;
  fail(ErrorCode::kUsage, "data.objective is \"{}\", and {} is {}: expected \"{}\"",
       config.data.objective, model.family->model_type,
       is_masked ? "a decoder, which sees nothing behind a masked token"
                 : "an encoder, which would read the next token off its input",
       is_masked ? "next_token" : "masked");
}

}  // namespace

bool gives_vocab_size(const Config& config) {
  const Json json = model_json(config.model);
  return json.contains("vocab_size") && !json.at("vocab_size").is_null();
}

DecoderConfig model_of(const Config& config, std::optional<int64_t> tokenizer_vocab_size) {
  const std::string& file = config.model.hf_config;
  const Json json = model_json(config.model);
  const std::string what = !file.empty() ? file
                           : takes_source(config.model)
                               ? "model.init_from " + config.model.init_from
                               : "[model]";
  try {
    DecoderConfig model = parse_decoder(json, what, tokenizer_vocab_size);
    if (config.origin.init_std_given) model.initializer_range = config.model.init_std;
    for (const auto& [key, value] : config.model.inline_keys.items()) {
      if (reads_key(*model.family, key)) continue;
      fail(ErrorCode::kUsage, "{} in [model] means nothing to a model_type \"{}\": leave it out",
           key, model.family->model_type);
    }
    if (model.vocab_size < tokenizer_vocab_size.value_or(0)) {
      fail(ErrorCode::kUsage, "the model's vocab_size is {}, the tokenizer {} has {} tokens: {}",
           model.vocab_size, config.data.tokenizer, *tokenizer_vocab_size,
           config.model.init_from.empty()
               ? "set model.vocab_size to at least that"
               : "expected a row for each. If tokens were added to it, transformers adds rows: "
                 "model.resize_token_embeddings(len(tokenizer)), then model.save_pretrained(…)");
    }
    check_sequence_length(config.data.sequence_length, model);
    check_objective(config, model);
    return model;
  } catch (const Error& error) {
    const bool is_mistake = error.code() == ErrorCode::kInvalid ||
                            error.code() == ErrorCode::kNotFound ||
                            error.code() == ErrorCode::kUnsupported;
    throw Error(is_mistake ? ErrorCode::kUsage : error.code(), error.what());
  }
}

const Backend& training_backend(const Config& config) {
  return config.device.kind == "auto" ? best_backend() : find_backend(config.device.kind);
}

const Backend& planned_backend(const Config& config) {
  return config.device.kind == "auto" ? best_backend() : find_backend_to_plan(config.device.kind);
}

KernelTable training_kernels(const Config& config) {
  const Backend& backend = planned_backend(config);
  if (backend.kind == "cpu") limit_cpu_kind(config.device.cpu);
  return backend.kernels();
}

std::unique_ptr<Device> training_device(const Config& config, int local_rank, int64_t num_together,
                                        const std::optional<CompilerSettings>& compiler) {
  DeviceOptions options;
  options.threads = static_cast<int>(config.device.threads);
  options.index = local_rank;
  options.num_together = static_cast<int>(num_together);
  options.check_ops = config.device.check_ops;
  options.pjrt_plugin = config.device.pjrt_plugin;
  const Backend& backend = training_backend(config);
  if (backend.compiles) options.compiler = compiler ? *compiler : compiler_settings(config);
  KernelTable kernels = training_kernels(config);
  return backend.make(options, std::move(kernels));
}

// Asked for once it is known that the model itself can be split, since a degree that suits the
// tokens may not suit the model.
void check_token_split(const Config& config) {
  const ParallelConfig& parallel = config.parallel;
  const int64_t tokens =
      config.data.sequence_length / parallel.context * config.batch.micro_sequences;
  if (!parallel.sequence || tokens % parallel.tensor == 0) return;
  fail(ErrorCode::kUsage,
       "[parallel] tensor is {}: with sequence = true it must divide the {} tokens of a "
       "micro-batch (micro_sequences {} x sequence_length {} / context {}): expected {}, or "
       "sequence = false",
       parallel.tensor, tokens, config.batch.micro_sequences, config.data.sequence_length,
       parallel.context, divisors_near(parallel.tensor, tokens));
}

int64_t head_block_tokens(const DecoderConfig& model, const Backend& backend) {
  if (!backend.has_own_memory) return 0;
  const int64_t row_bytes = model.vocab_size * size_of(DType::kF32);
  return std::clamp<int64_t>((int64_t{512} << 20) / row_bytes / 64 * 64, 2048, 4096);
}

StepSpec step_spec(const Config& config, const DecoderConfig& model, const ParallelLayout& layout) {
  check_token_split(config);
  StepSpec spec;
  spec.layout = layout;
  spec.model = model;
  const auto micro_batches = [&](int64_t data_rank) {
    return rows_of(layout.at_data_rank(data_rank)).rows(config.batch.global_sequences) /
           config.batch.micro_sequences;
  };
  const int64_t smallest = batch_ramp(config).smallest();
  spec.micro_batches = micro_batches(layout.coordinate("dp"));
  if (layout.zero >= 3) {
    spec.empty_micro_batches = micro_batches(layout.shares().kinds().front()) - spec.micro_batches;
  }
  spec.micro_sequences = config.batch.micro_sequences;
  spec.sequence_length = config.data.sequence_length;
  spec.documents = config.data.document_mask;
  spec.repeatable = config.precision.repeatable;
  spec.token_losses = !config.evaluate.empty();
  spec.recompute = parse_recompute_policy(config.memory.recompute);
  spec.offload_optimizer = config.memory.offload_optimizer;
  if (config.memory.offload_activations) {
    spec.offload_activations = OffloadOptions{.least_bytes = config.memory.offload_min_bytes};
  }
  UpdateOptions& update = spec.update;
  // A compiler of whole programs orders them itself.
  spec.overlap = config.parallel.overlap && !planned_backend(config).compiles;
  const int64_t fewest = smallest / layout.reduction_width / config.batch.micro_sequences;
  spec.in_pairs = config.parallel.pairs && fewest > 1;
  const int64_t all = spec.pipeline().micro_batches;
  spec.also_one_micro_batch = all > 1 && all * smallest == config.batch.global_sequences;
  spec.fp8 = config.precision.mode == "fp8";
  spec.fast_accumulation = config.precision.fast_accumulation;
  spec.keep_fp8_weights = spec.fp8 && config.memory.keep_fp8_weights && layout.zero < 3;
  spec.head_block_tokens = head_block_tokens(model, planned_backend(config));
  update.precision = parse_precision(config.precision.mode);
  update.optimizer.moments = moments_dtype(config.precision);
  update.optimizer.beta1 = config.optimizer.beta1;
  update.optimizer.beta2 = config.optimizer.beta2;
  update.optimizer.epsilon = config.optimizer.epsilon;
  update.optimizer.momentum = config.optimizer.momentum;
  update.optimizer.seed = static_cast<uint64_t>(config.run.seed);
  update.weight_decay = config.optimizer.weight_decay;
  update.clip_norm = config.optimizer.clip_norm;
  update.zero = layout.zero;
  update.bucket_bytes = bucket_bytes(num_parameters(model));
  update.num_corpora = std::max<int64_t>(1, std::ssize(config.data.source));
  update.stage = layout.stage();
  update.rule = parameter_rules(config.optimizer, model);
  return spec;
}

bool runs_one_micro_batch(const StepSpec& spec) {
  return spec.micro_batches == 1 && spec.layout.shares().most() == 1;
}

int64_t micro_batches_of_virtual_rank(const StepSpec& spec) {
  return spec.micro_batches / spec.layout.hosted_virtual_ranks();
}

PipelineShape StepSpec::pipeline() const {
  return {layout.mesh.size("pp"), layout.virtual_stages, micro_batches + empty_micro_batches,
          in_pairs ? micro_batches_of_virtual_rank(*this) : 0};
}

std::set<std::string> shared_parameters(const StepSpec& spec) {
  std::set<std::string> shared;
  if (spec.pipeline().num_stages == 1) return shared;
  for (const ParameterSpec& parameter : parameter_specs(spec.model)) {
    if (parameter.shared) shared.insert(parameter.name);
  }
  return shared;
}

std::string chunk_program(std::string_view name, int64_t chunk, bool several) {
  return several ? fmt::format("{}.{}", name, chunk) : std::string(name);
}

namespace {

// The levels of the tree that lie within a rank, over its own virtual ranks.
int64_t num_fold_levels(const StepSpec& spec) {
  return std::bit_width(static_cast<uint64_t>(spec.layout.hosted_virtual_ranks() - 1));
}

// Builds the program that pushes a chunk's gradient sums to a level, or merges a level into them.
Graph fold_graph(const Graph& training, int chunk, int64_t level, FoldMode mode) {
  Graph graph(training.mesh());
  graph.set_phase(Phase::kUpdate);
  std::vector<FoldPair> pairs;
  std::set<ValueId> seen;
  for (const Node& node : training.nodes()) {
    if (node.chunk != chunk || node.phase == Phase::kUpdate) continue;
    for (const ValueId id : node.inputs) {
      if (id == kNoValue || !seen.insert(id).second) continue;
      const Value& value = training.value(id);
      if (value.role != Role::kGradient || value.producer >= 0) continue;
      const auto input = [&](const std::string& name) {
        return graph.add_input(Role::kGradient, name, value.type);
      };
      const ValueId gradient = input(value.name);
      pairs.push_back({input(fmt::format("level{}.{}", level, value.name)), gradient});
    }
  }
  fold(graph, pairs, mode);
  return graph;
}

std::set<int> chunks_of(const Graph& graph) {
  std::set<int> chunks;
  for (const Node& node : graph.nodes()) chunks.insert(node.chunk);
  return chunks;
}

}  // namespace

ProgramSet plan_training(const TrainingGraphs& graphs, const StepSpec& spec,
                         const KernelTable& kernels, Checks checks) {
  const std::set<int> chunks = chunks_of(graphs.training);
  std::vector<GraphToPlan> requests(2);
  requests[0].graph = &graphs.training;
  requests[0].several_micro_batches = spec.pipeline().micro_batches > 1;
  requests[0].also_one_micro_batch = spec.also_one_micro_batch;
  requests[0].in_pairs = spec.in_pairs;
  requests[0].batch_inputs = {decoder_names::kTokens, decoder_names::kLabels,
                              decoder_names::kPositions, decoder_names::kAttentionStart};
  const auto tasks = stage_tasks(spec.pipeline(), spec.layout.stage());
  for (const int chunk : chunks) requests[0].slots[chunk] = max_in_flight(tasks, chunk);
  requests[1] = {&graphs.evaluation, "evaluate", "", "evaluate_total", {}};

  std::list<Graph> others;  // a list, since requests hold pointers to its elements
  for (int64_t level = 0; level < num_fold_levels(spec); ++level) {
    for (const int chunk : chunks) {
      for (const FoldMode mode : {FoldMode::kPush, FoldMode::kMerge}) {
        others.push_back(fold_graph(graphs.training, chunk, level, mode));
        const char* name = mode == FoldMode::kPush ? "push" : "merge";
        const std::string program =
            chunk_program(fmt::format("{}.{}", name, level), chunk, chunks.size() > 1);
        requests.push_back({&others.back(), "", "", program, {}});
      }
    }
  }
  if (spec.keep_fp8_weights) {
    others.push_back(weights_to_round(graphs.training));
    if (!others.back().nodes().empty()) {
      requests.push_back({&others.back(), "", "", kRoundWeightsProgram, {}});
    }
  }
  ProgramSet programs = plan_memory(requests, kernels, spec.layout.rank);
  if (spec.in_pairs) pair_programs(programs);
  programs.on_host[static_cast<size_t>(Arena::kOptimizer)] = spec.offload_optimizer;
  if (checks == Checks::kNone) return programs;
  std::vector<const Graph*> planned;
  for (const GraphToPlan& request : requests) planned.push_back(request.graph);
  check_memory(planned, programs, rehearsal(spec, programs));
  return programs;
}

}  // namespace skein
