#include "skein/train/explain/replica.h"

#include "skein/comm/local/local_communicator.h"
#include "skein/train/start/memory_check.h"
#include "skein/train/start/run_algorithms.h"
#include "skein/weights/initialize.h"
#include "skein/weights/model_source.h"

namespace skein {

Config config_of_replica(Config config, int64_t reduction_width) {
  const std::string sums = config.parallel.sums;
  config.parallel = {};
  config.parallel.sums = sums;
  config.parallel.reduction_width = reduction_width;
  config.launch = {};
  config.memory.offload_optimizer = config.memory.offload_activations = false;
  return config;
}

Config config_of_one_row(Config config) {
  config.batch = {.global_sequences = 1, .micro_sequences = 1};
  return config_of_replica(std::move(config), 1);
}

Replica::Replica(const Config& config, const DecoderConfig& model, Device& device,
                 const CheckpointReader* checkpoint)
    : config_(config), model_(model) {
  LocalCommunicator alone("replica");
  const ParallelLayout layout = parallel_layout(config, model, 1, 0);
  const StepSpec spec = step_spec(config, model, layout);
  const TrainingGraphs graphs = training_graphs(spec);
  programs_ = plan_training(graphs, spec, device.kernels());
  tensors_ = state_tensors(graphs.training, spec.model);
  check_memory(alone, device, config, spec, programs_, 0);
  runner_ = std::make_unique<StepRunner>(device, programs_, spec);
  AlgorithmChoices kept;
  if (checkpoint != nullptr) {
    kept = algorithms_from_json(checkpoint->state().algorithms, checkpoint->path().string());
  }
  agree_on_algorithms(alone, layout.mesh, algorithm_kernels(runner_->executor()), kept);
}

void Replica::load(const CheckpointReader* checkpoint) {
  Executor& executor = runner_->executor();
  if (checkpoint != nullptr) return restore_state(*checkpoint, tensors_, executor);
  for (const StateTensor& tensor : tensors_) executor.fill_zero(tensor.name);
  if (!config_.model.init_from.empty()) {
    ModelSource(config_.model.init_from).load_parameters(model_, executor);
  } else {
    initialize_parameters(executor, model_,
                          {.seed = static_cast<uint64_t>(config_.run.seed),
                           .std = model_.initializer_range,
                           .scaled = config_.model.scaled_init});
  }
}

Replica::State Replica::take() const {
  State state;
  const Executor& executor = runner_->executor();
  for (const StateTensor& tensor : tensors_) {
    std::vector<std::byte>& bytes = state[tensor.name];
    bytes.resize(static_cast<size_t>(executor.view(tensor.name).num_bytes()));
    executor.download(tensor.name, bytes.data(), std::ssize(bytes));
  }
  return state;
}

void Replica::put(const State& state) {
  for (const auto& [name, bytes] : state) {
    runner_->executor().upload(name, bytes.data(), std::ssize(bytes));
  }
}

}  // namespace skein
