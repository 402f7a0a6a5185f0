#include "skein/train/trainer.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <csignal>
#include <utility>

#include "skein/base/log.h"
#include "skein/base/version.h"
#include "skein/model/decoder.h"
#include "skein/record/op_trace.h"
#include "skein/train/consensus.h"
#include "skein/train/device_ceiling.h"
#include "skein/train/memory_check.h"
#include "skein/train/run_algorithms.h"
#include "skein/train/run_folder.h"
#include "skein/train/same_arithmetic.h"
#include "skein/weights/initialize.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Without the sign that a NaN may have.
std::string name_of(double value) { return std::isnan(value) ? "nan" : fmt::format("{:g}", value); }

void refuse_what_is_not_there_yet(const Config& config) {
  if (config.checkpoint.dir.starts_with("s3://")) {
    fail(ErrorCode::kUnsupported, "checkpoint.dir is '{}': S3 is not built yet, name a folder",
         config.checkpoint.dir);
  }
}

// An error inside a step says which one; one that came behind the host, where it was.
template <typename Work>
auto in_step(int64_t step, const Device& device, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kPeerLost) throw;
    const std::string behind = device.failure();
    if (!behind.empty()) fail(ErrorCode::kInternal, "{}", behind);
    fail(error.code(), "step {}: {}", step, error.what());
  }
}

}  // namespace

Trainer::Trainer(const Config& config, Communicator& world, std::string start_id, int local_rank)
    : config_((refuse_what_is_not_there_yet(config), config)),
      world_(world),
      start_id_(std::move(start_id)),
      local_rank_(local_rank),
      schedule_(learning_rate_schedule(config.optimizer)) {
  if (is_first()) {
    lock_.emplace(config.run.dir);
    std::error_code none;  // of the folder, yet
    if (!fs::equivalent(checkpoint_dir(config), config.run.dir, none)) {
      checkpoints_lock_.emplace(lock_checkpoints(checkpoint_dir(config), config.run.dir));
    }
    log_.emplace(config_);
  }
  open_model();
  choose_checkpoint();
  lay_out();
  open_data();
  accept_beginning();
  allocate();
  agree_on_algorithms();
  begin_state();
  wait_for_all(world_, "every rank is ready to train");
}

// Groups first: freeing a GPU's memory would wait for what a lost peer never ends.
Trainer::~Trainer() { communicators_.clear(); }

void Trainer::open_model() {
  tokenizer_ = load_tokenizer(config_.data.tokenizer, "data.tokenizer");
  const std::string why = is_first() ? tokenizer_->why_not_exported() : "";
  if (!why.empty()) {
    log::warn(
        "{}: an export will not have this tokenizer, since transformers cannot give its ids: "
        "{}",
        config_.data.tokenizer, why);
  }
  model_ = model_of(config_, tokenizer_->vocab_size());
  if (model_.vocab_size < tokenizer_->vocab_size()) {
    fail(ErrorCode::kUsage,
         "the model's vocab_size is {}, the tokenizer {} has {} tokens: set model.vocab_size to at "
         "least that",
         model_.vocab_size, config_.data.tokenizer, tokenizer_->vocab_size());
  }
  if (tokenizer_->bos_id() >= 0) model_.bos_token_id = tokenizer_->bos_id();
  if (tokenizer_->eos_id() >= 0) model_.eos_token_ids = {tokenizer_->eos_id()};
}

void Trainer::lay_out() {
  const int64_t stored = checkpoint_ ? checkpoint_->state().reduction_width : 0;
  layout_ = parallel_layout(config_, model_, world_.size(), world_.rank(), stored);
  if (is_first() && stored > 0 && layout_.reduction_width != stored) {
    log::warn(
        "the reduction width changes from {} to {}: the data stay the same, but gradients are "
        "summed "
        "in another order from here, and losses may differ in their last bits",
        stored, layout_.reduction_width);
  }
  if (world_.size() > 1) expect_several_ranks();
  device_ = training_device(config_, local_rank_);
  check_same_arithmetic(world_, *device_);
  if (world_.size() > 1 && device_->kind() == "cuda") {
    NcclOptions options;
    options.stream = device_->stream();
    options.timeout_s = config_.launch.collective_timeout_s;
    options.sums = config_.parallel.sums == "fast" ? Sums::kFast : Sums::kCanonical;
    device_world_ = make_nccl_world(world_, options);
  }
  communicators_ = split_by_axis(device_world_ ? *device_world_ : world_, layout_.mesh);
}

// This rank's share of the global batch.
LoaderOptions Trainer::lanes() const {
  const int64_t count = config_.batch.global_sequences / layout_.data_degree();
  LoaderOptions options;
  options.first_lane = layout_.coordinate("dp") * count;
  options.end_lane = options.first_lane + count;
  return options;
}

void Trainer::open_data() {
  training_data_ =
      std::make_unique<DataFeed>(config_.data.train, *tokenizer_, config_, model_.vocab_size);
  if (!config_.data.validation.empty()) {
    validation_data_ = std::make_unique<DataFeed>(config_.data.validation, *tokenizer_, config_,
                                                  model_.vocab_size, "data.validation");
    validation_batches_ =
        std::make_unique<ValidationBatches>(validation_data_->context(), lanes().first_lane,
                                            lanes().end_lane, config_.validate.batches);
  }
}

RunContent Trainer::content() const {
  RunContent content;
  content.tokenizer = tokenizer_->content_hash();
  content.tokens = tokenizer_->vocab_size();
  content.train = corpus_fingerprint(training_data_->context().source());
  if (validation_data_) {
    content.validation = corpus_fingerprint(validation_data_->context().source());
  }
  return content;
}

// Refuses, before anything is written or allocated, what is not the run that it goes on from, and
// weights that this model would read otherwise.
void Trainer::accept_beginning() {
  if (!checkpoint_ && !config_.model.init_from.empty()) {
    // Rank 0's choice: the run that they are of may save meanwhile.
    if (is_first()) {
      source_ = std::make_unique<ModelSource>(config_.model.init_from);
      check_source(*source_, model_, *tokenizer_, config_.run.accept_changes);
    }
    const std::string path = text_of_rank_0(world_, is_first() ? source_->path().string() : "");
    if (!is_first()) {
      source_ = std::make_unique<ModelSource>(ModelSource::opened_elsewhere(path));
    }
  }
  if (is_first()) {
    configuration_ = run_configuration(config_, model_, content());
    if (checkpoint_) {
      changes_ = accept_checkpoint(*checkpoint_, configuration_,
                                   needed_tensors(model_, config_.precision), config_.run);
      const std::string derived = schedule_that_follows(config_, changes_);
      if (!derived.empty()) log::warn("{}", derived);
    }
  }
  configuration_ = parse_json(text_of_rank_0(world_, is_first() ? configuration_.dump() : ""),
                              "what rank 0 says of the run");
}

void Trainer::allocate() {
  const StepSpec spec = step_spec(config_, model_, layout_);
  const DType dtype = compute_dtype(spec.update.precision);
  const double ceiling_flops = measure_ceiling(dtype);  // while there is memory for it
  const TrainingGraphs graphs = training_graphs(spec);
  programs_ = plan_training(graphs, spec, device_->kernels());
  const bool is_first_stage = layout_.stage() == 0;
  state_ = state_tensors(graphs.training, layout_.rank,
                         is_first_stage ? std::set<std::string>{} : shared_parameters(spec));

  std::vector<TensorSpec> specs;
  for (const StateTensor& tensor : state_) specs.push_back(tensor.spec);
  check_memory(world_, *device_, config_, spec, programs_, CheckpointWriter::snapshot_bytes(specs));
  runner_ = std::make_unique<StepRunner>(*device_, programs_, spec, &communicators_);
  CheckpointWriterOptions writer;
  writer.retention = {config_.checkpoint.keep, config_.checkpoint.permanent_every_steps};
  writer.async = config_.checkpoint.async;
  writer.rank = world_.rank();
  writer.num_ranks = world_.size();
  std::transform(start_id_.begin(), start_id_.end(), std::back_inserter(writer.save_id),
                 [](unsigned char letter) { return std::tolower(letter); });
  if (device_->kind() != "cpu") {
    writer.copy = [this](void* to, const void* from, size_t bytes) {
      device_->download(to, from, static_cast<int64_t>(bytes));
    };
  }
  writer.should_abort = [this] { return peer_lost_.load(); };
  writer_ = std::make_unique<CheckpointWriter>(checkpoint_dir(config_), writer, std::move(specs));
  wait_for_all(world_, "what is left of an earlier start is gone");

  RunLog::Scale scale;
  scale.num_parameters = num_parameters(model_);
  scale.flops_per_token = training_flops_per_token(model_, config_.data.sequence_length);
  scale.ceiling_flops = ceiling_flops;
  // Of several ranks it is a collective measurement, which a step does not interrupt; a GPU has no
  // memory left for it.
  if (world_.size() == 1 && device_->kind() == "cpu")
    scale.measure_ceiling = [this, dtype] { return measure_ceiling(dtype); };
  scale.arena_bytes = programs_.arena_bytes;
  scale.snapshot_bytes = writer_->snapshot_bytes();
  if (log_) {
    log_->set_scale(scale);
  } else {
    const OrderedJson allocated = allocated_to_json(scale.arena_bytes, scale.snapshot_bytes);
    log::info("allocated {}", allocated.dump());
  }
}

void Trainer::agree_on_algorithms() {
  AlgorithmChoices kept;
  if (checkpoint_) {
    kept = algorithms_from_json(checkpoint_->state().algorithms, checkpoint_->path().string());
  }
  algorithms_ = algorithms_to_json(skein::agree_on_algorithms(
      world_, layout_.mesh, algorithm_kernels(runner_->executor()), kept));
}

// All ranks at once, as they compute.
double Trainer::measure_ceiling(DType dtype) {
  wait_for_all(world_, "the ceiling is measured");
  return sum_over_ranks(world_, measure_device_ceiling_flops(*device_, dtype));
}

void Trainer::begin_state() {
  if (checkpoint_) return restore();
  if (source_) {
    source_->load_parameters(model_, runner_->executor());
    source_.reset();
  } else {
    initialize_parameters(runner_->executor(), model_,
                          {.seed = static_cast<uint64_t>(config_.run.seed),
                           .std = config_.model.init_std,
                           .scaled = config_.model.scaled_init});
  }
  begin_run(config_.model.init_from);
  start_loader({});
}

// Rank 0 looks; all go on from what it found.
void Trainer::choose_checkpoint() {
  StartingPoint own;
  if (is_first()) {
    own = choose_start(checkpoints_lock_ ? *checkpoints_lock_ : *lock_, checkpoint_dir(config_),
                       config_.run.resume, [this](const CheckpointInfo& info, const Error& why) {
                         log_->skip_checkpoint(info, why);
                       });
  }
  start_ = start_of_rank_0(world_, std::move(own));
  if (start_.checkpoint.empty()) return;
  checkpoint_ = std::make_unique<CheckpointReader>(start_.checkpoint);
}

void Trainer::restore() {
  const CheckpointReader& reader = *checkpoint_;
  const TrainingState& state = reader.state();
  restore_state(reader, state_, runner_->executor());
  begun_ = step_ = saved_step_ = good_step_ = state.step;
  tokens_ = state.tokens_seen;
  const std::vector<LaneState> lanes =
      lanes_from_json(state.lanes, training_data_->context(), reader.path().string());
  begin_run(reader.path().string(), state.monitor);
  start_loader(lanes);
  checkpoint_.reset();
}

// Nothing is refused any more. `from`: where the weights came from.
void Trainer::begin_run(const std::string& from, const Json& monitor) {
  wait_for_all(world_, "every rank has its state");
  if (!log_) return;
  write_run_folder(config_, model_, *tokenizer_);
  log_->start(step_, from, {.why = start_.why, .changes = changes_, .monitor = monitor});
}

void Trainer::start_loader(std::span<const LaneState> lanes) {
  LoaderOptions options = this->lanes();
  options.first_step = step_ + 1;
  loader_ = std::make_unique<Loader>(training_data_->context(), options, lanes);
}

// One rank's signal stops all of them after the same step: what several ranks ask goes round with
// the sums of a step, and a device that runs behind has begun its next ones everywhere.
bool Trainer::stop_requested() {
  stop_requested_ |= world_.size() == 1 && signals_.requested() != 0;
  return stop_requested_;
}

TrainOutcome Trainer::run() {
  try {
    return train_to_the_end();
  } catch (const Error& error) {
    peer_lost_ = error.code() == ErrorCode::kPeerLost;
    try {
      end_saves();  // what was good before is not lost with what failed
    } catch (const Error&) {
      // What went wrong first is what counts.
    }
    throw;
  }
}

TrainOutcome Trainer::train_to_the_end() {
  if (step_ >= config_.run.steps) {
    if (log_) log_->nothing_to_do(step_);
    return TrainOutcome::kFinished;
  }
  step_clock_ = Clock::now();
  while (begun_ < config_.run.steps && !stop_requested()) {
    start_step();
    const bool validates = due(config_.validate.every_steps);
    const bool saves = due(config_.checkpoint.every_steps);
    const bool pauses = validates || saves || begun_ == config_.run.steps;
    finish_steps(pauses ? 0 : device_->depth() - 1);
    if (validates) validate();
    if (saves) save_checkpoint();
    collect_saves();
  }
  finish_steps(0);
  const bool stopped = step_ < config_.run.steps;
  if (!stopped && validation_data_ && !due(config_.validate.every_steps)) validate();
  if (saved_step_ != step_) save_checkpoint();
  end_saves();
  if (failed_save_) throw *failed_save_;  // the state that training ends with is not safe
  const int signal = signals_.requested();
  const std::string why = !stopped ? "done" : signal_name(signal == 0 ? SIGTERM : signal);
  const OrderedJson wire = {{"steps", counted_steps_}, {"collectives", wire_to_json(wire_)}};
  if (log_) {
    log_->stop(step_, why, wire);
  } else {
    log::info("wire {}", wire.dump());
  }
  return stopped ? TrainOutcome::kStopped : TrainOutcome::kFinished;
}

void Trainer::start_step() {
  double wait_seconds = 0;
  world_.set_step(begun_ + 1);
  if (device_world_) device_world_->set_step(begun_ + 1);
  const Batch& batch = loader_->next(&wait_seconds);
  const float learning_rate = schedule_.at(begun_ + 1);
  const Wire before = counted_wire(communicators_);
  const bool traced = begun_ + 1 == config_.log.trace_step;
  if (traced) {
    finish_steps(0);
    runner_->executor().start_profile();
  }
  in_step(begun_ + 1, *device_, [&] {
    runner_->start(batch, begun_ + 1, learning_rate, [&] { return signals_.requested() != 0; });
  });
  add_difference(wire_, counted_wire(communicators_), before);
  under_way_.push_back({learning_rate, wait_seconds});
  ++begun_;
  if (traced) write_trace();
}

void Trainer::write_trace() {
  Executor& executor = runner_->executor();
  executor.stop_profile();
  const fs::path path = fs::path(config_.run.dir) / fmt::format("trace-{}.json", world_.rank());
  write_op_trace(executor.take_spans(), world_.rank(), path);
  if (is_first()) log::info("the ops of step {} are in {}", begun_, path.string());
}

// Until at most `remaining` are under way.
void Trainer::finish_steps(int remaining) {
  while (static_cast<int>(under_way_.size()) > remaining) finish_step();
}

void Trainer::finish_step() {
  const StepUnderWay step = under_way_.front();
  under_way_.pop_front();
  const StepResult result = in_step(step_ + 1, *device_, [&] { return runner_->finish(); });
  if (device_world_) device_world_->check({.label = "a training step"});
  stop_requested_ |= result.stops;
  check_finite(result);
  ++step_;
  ++counted_steps_;
  tokens_ += result.num_label_tokens;

  StepMetrics metrics;
  metrics.step = step_;
  metrics.loss = static_cast<float>(result.loss);
  metrics.learning_rate = step.learning_rate;
  metrics.grad_norm = result.grad_norm;
  metrics.param_norm = result.param_norm;
  metrics.tokens = tokens_;
  metrics.epoch = static_cast<float>(training_data_->context().epochs(result.progress));
  metrics.comm_exposed_ms =
      static_cast<float>(runner_->executor().take_communication_seconds() * 1e3);
  metrics.data_wait_ms = static_cast<float>(step.wait_seconds * 1e3);
  metrics.checkpoint_stall_ms = static_cast<float>(stall_seconds_ * 1e3);
  // All that passed since the step before, saving and writing the log included.
  const double seconds = seconds_since(step_clock_);
  step_clock_ = Clock::now();
  stall_seconds_ = 0;
  if (log_) {
    const int64_t tokens = config_.batch.global_sequences * config_.data.sequence_length;
    leave_out(log_->step(metrics, seconds, tokens));
  }
}

// Time that belongs to no step.
void Trainer::leave_out(double seconds) {
  step_clock_ +=
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Of the state before a save as well: the norm of the weights is the one after the update.
void Trainer::check_finite(const StepResult& result) {
  if (std::isfinite(result.loss) && std::isfinite(result.grad_norm) &&
      std::isfinite(result.param_norm)) {
    return;
  }
  end_saves();  // all ranks are here, so it is soon complete
  fail(
      ErrorCode::kNotFinite,
      "step {}: the loss is {}, the gradient norm {} and the norm of the weights after it {}: "
      "expected finite numbers. {}; lower optimizer.learning_rate or look at the data of this step "
      "with `skein data sample --step {}`",
      step_ + 1, name_of(result.loss), name_of(result.grad_norm), name_of(result.param_norm),
      good_step_ > 0 ? fmt::format("The newest checkpoint is of step {}", good_step_)
                     : "Nothing was saved",
      step_ + 1);
}

void Trainer::validate() {
  if (!validation_batches_) return;
  const auto start = Clock::now();
  StepRunner::LossSum sum;
  double epochs = 0;  // by the lanes of this rank
  validation_batches_->rewind();
  while (const Batch* batch = validation_batches_->next()) {
    in_step(step_, *device_, [&] { runner_->evaluate(*batch, sum); });
    const double progress = static_cast<double>(batch->progress * layout_.data_degree());
    epochs = validation_data_->context().epochs(progress);
  }
  if (is_first() && epochs > 1 && !std::exchange(told_validation_repeats_, true)) {
    log::warn(
        "{} is smaller than validate.batches = {} and was read {:.1f} times: hold more out, or set "
        "validate.batches to {}",
        config_.data.validation, config_.validate.batches, epochs,
        std::max<int64_t>(
            1, static_cast<int64_t>(static_cast<double>(config_.validate.batches) / epochs)));
  }
  if (log_) log_->validation(step_, sum.mean(), sum.num_tokens, seconds_since(start));
  leave_out(seconds_since(start));
}

void Trainer::save_checkpoint() {
  const auto start = Clock::now();
  TrainingState state;
  state.step = state.schedule_step = step_;
  state.seed = static_cast<uint64_t>(config_.run.seed);
  state.tokens_seen = tokens_;
  state.reduction_width = layout_.reduction_width;
  state.timeline = start_.timeline;
  // Ranks that differ in other coordinates have the same lanes.
  if (layout_.is_first_of_replica()) {
    state.first_lane = lanes().first_lane;
  } else {
    state.first_lane.reset();
  }
  state.lanes = lanes_to_json(training_data_->context(), loader_->states());
  state.configuration = configuration_;
  if (is_first()) state.algorithms = algorithms_;
  state.skein_version = kVersion;
  if (log_) state.monitor = log_->monitor();
  if (log_) log_->checkpoint_begin(step_);
  writer_->begin(std::move(state), state_views(runner_->executor(), state_));
  saved_step_ = step_;
  // A rank may have waited long for its storage: not within the deadline of a step's collectives.
  wait_for_all(world_, "every rank has begun to save");
  stall_seconds_ += seconds_since(start);
}

void Trainer::collect_saves() {
  while (const auto saved = writer_->poll()) {
    if (saved->ok()) {
      Result<SavedCheckpoint> copy = *saved;
      if (log_) log_->checkpoint_commit(copy.value());
      good_step_ = copy.value().step;
      start_.parent.reset();  // this run has a checkpoint of its own
      failed_save_.reset();
    } else {
      failed_save_ = saved->error();
      // Not of the disk but of the state, and later ones follow from it.
      if (failed_save_->code() == ErrorCode::kNotFinite) throw *failed_save_;
      if (log_) log_->checkpoint_failed(step_, saved->error());
    }
  }
}

// Waits for the save that is under way.
void Trainer::end_saves() {
  writer_->wait();
  collect_saves();
}

}  // namespace skein
