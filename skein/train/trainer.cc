#include "skein/train/trainer.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <csignal>

#include "skein/base/log.h"
#include "skein/base/version.h"
#include "skein/model/llama/parameters.h"
#include "skein/train/consensus.h"
#include "skein/train/device_ceiling.h"
#include "skein/train/initialize.h"
#include "skein/train/memory_check.h"
#include "skein/train/model_source.h"
#include "skein/train/op_trace.h"

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
    log_.emplace(config_);
  }
  open_model();
  if (const auto path = checkpoint_to_resume()) {
    checkpoint_ = std::make_unique<CheckpointReader>(*path);
  }
  lay_out();
  open_data();
  allocate();
  begin_state();
  wait_for_all(world_, "every rank is ready to train");
}

// Groups first: freeing a GPU's memory would wait for what a lost peer never ends.
Trainer::~Trainer() { communicators_.clear(); }

void Trainer::open_model() {
  tokenizer_ = Tokenizer::load(config_.data.tokenizer);
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
                                                  model_.vocab_size);
    validation_batches_ =
        std::make_unique<ValidationBatches>(validation_data_->context(), lanes().first_lane,
                                            lanes().end_lane, config_.validate.batches);
  }
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
  writer.should_abort = [this] { return failed_.load(); };
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

// All ranks at once, as they compute.
double Trainer::measure_ceiling(DType dtype) {
  wait_for_all(world_, "the ceiling is measured");
  return sum_over_ranks(world_, measure_device_ceiling_flops(*device_, dtype));
}

void Trainer::begin_state() {
  if (is_first()) keep_tokenizer();
  if (checkpoint_) return restore();
  if (!config_.model.init_from.empty()) {
    ModelSource(config_.model.init_from).load_parameters(model_, runner_->executor());
  } else {
    initialize_parameters(runner_->executor(), model_,
                          {.seed = static_cast<uint64_t>(config_.run.seed),
                           .std = config_.model.init_std,
                           .scaled = config_.model.scaled_init});
  }
  if (log_) log_->start(0, config_.model.init_from);
  start_loader({});
}

// Rank 0 looks; all go on from what it found.
std::optional<fs::path> Trainer::checkpoint_to_resume() {
  std::string found;
  if (is_first()) {
    if (const auto path = newest_checkpoint()) found = path->string();
  }
  found = text_of_rank_0(world_, found);
  if (found.empty()) return std::nullopt;
  return found;
}

// Nothing: begin anew. Never begins anew beside checkpoints that are all damaged.
std::optional<fs::path> Trainer::newest_checkpoint() {
  const fs::path dir = checkpoint_dir(config_);
  if (config_.run.resume == "never") {
    if (!list_checkpoints(dir).empty()) {
      fail(ErrorCode::kUsage,
           "{} holds checkpoints, and run.resume is \"never\": name another run.dir, or move them",
           dir.string());
    }
    return std::nullopt;
  }
  if (config_.run.resume != "auto") {
    verify_checkpoint(config_.run.resume).value();
    return config_.run.resume;
  }
  int64_t num_damaged = 0;
  const auto newest = find_newest_good(dir, [&](const CheckpointInfo& info, const Error& why) {
    ++num_damaged;
    log_->skip_checkpoint(info, why);
  });
  if (newest) return newest->path;
  if (num_damaged > 0) {
    fail(ErrorCode::kCorrupt,
         "none of the {} checkpoints in {} is good: mend or move them to begin anew", num_damaged,
         dir.string());
  }
  return std::nullopt;
}

void Trainer::restore() {
  const CheckpointReader& reader = *checkpoint_;
  const TrainingState& state = reader.state();
  if (state.seed != static_cast<uint64_t>(config_.run.seed)) {
    fail(ErrorCode::kUsage, "{} was trained with run.seed = {}, the configuration has {}",
         reader.path().string(), state.seed, config_.run.seed);
  }
  restore_state(reader, state_, runner_->executor());
  begun_ = step_ = saved_step_ = state.step;
  tokens_ = state.tokens_seen;
  const std::vector<LaneState> lanes =
      lanes_from_json(state.lanes, training_data_->context(), reader.path().string());
  if (log_) log_->start(step_, reader.path().string());
  start_loader(lanes);
  checkpoint_.reset();
}

void Trainer::start_loader(std::span<const LaneState> lanes) {
  LoaderOptions options = this->lanes();
  options.first_step = step_ + 1;
  loader_ = std::make_unique<Loader>(training_data_->context(), options, lanes);
}

// One rank's signal stops all of them after the same step.
bool Trainer::stop_requested() {
  if (!stop_requested_) stop_requested_ = sum_over_ranks(world_, signals_.requested()) != 0;
  return stop_requested_;
}

TrainOutcome Trainer::run() {
  try {
    return train_to_the_end();
  } catch (...) {
    failed_ = true;
    throw;
  }
}

TrainOutcome Trainer::train_to_the_end() {
  if (step_ >= config_.run.steps) {
    if (log_) log_->nothing_to_do(step_);
    return TrainOutcome::kFinished;
  }
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
  writer_->wait();
  collect_saves();
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
  if (under_way_.empty()) step_clock_ = Clock::now();
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
  in_step(begun_ + 1, *device_, [&] { runner_->start(batch, begun_ + 1, learning_rate); });
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
  metrics.comm_exposed_ms =
      static_cast<float>(runner_->executor().take_communication_seconds() * 1e3);
  metrics.data_wait_ms = static_cast<float>(step.wait_seconds * 1e3);
  metrics.checkpoint_stall_ms = static_cast<float>(stall_seconds_ * 1e3);
  const double seconds = seconds_since(step_clock_) + stall_seconds_;
  step_clock_ = Clock::now();
  stall_seconds_ = 0;
  if (log_) {
    log_->step(metrics, seconds, config_.batch.global_sequences * config_.data.sequence_length);
  }
}

void Trainer::check_finite(const StepResult& result) const {
  if (std::isfinite(result.loss) && std::isfinite(result.grad_norm)) return;
  fail(ErrorCode::kInvalid,
       "step {}: the loss is {} and the gradient norm {}: expected finite numbers. Nothing was "
       "saved "
       "after step {}; lower optimizer.learning_rate or look at the data of this step with `skein "
       "data sample --step {}`",
       step_ + 1, name_of(result.loss), name_of(result.grad_norm), saved_step_, step_ + 1);
}

void Trainer::validate() {
  if (!validation_batches_) return;
  const auto start = Clock::now();
  StepRunner::LossSum sum;
  validation_batches_->rewind();
  while (const Batch* batch = validation_batches_->next()) {
    in_step(step_, *device_, [&] { runner_->evaluate(*batch, sum); });
  }
  if (log_) log_->validation(step_, sum.mean(), sum.num_tokens, seconds_since(start));
}

void Trainer::save_checkpoint() {
  TrainingState state;
  state.step = state.schedule_step = step_;
  state.seed = static_cast<uint64_t>(config_.run.seed);
  state.tokens_seen = tokens_;
  state.reduction_width = layout_.reduction_width;
  // Ranks that differ in other coordinates have the same lanes.
  if (layout_.is_first_of_replica()) {
    state.first_lane = lanes().first_lane;
  } else {
    state.first_lane.reset();
  }
  state.lanes = lanes_to_json(training_data_->context(), loader_->states());
  state.configuration = configuration_json();
  state.skein_version = kVersion;
  if (log_) log_->checkpoint_begin(step_);
  const double stall = writer_->begin(std::move(state), state_views(runner_->executor(), state_));
  stall_seconds_ += stall;
  saved_step_ = step_;
  // A rank may have waited long for its storage: not within the deadline of a step's collectives.
  wait_for_all(world_, "every rank has begun to save");
}

void Trainer::collect_saves() {
  while (const auto saved = writer_->poll()) {
    if (saved->ok()) {
      Result<SavedCheckpoint> copy = *saved;
      if (log_) log_->checkpoint_commit(copy.value());
      failed_save_.reset();
    } else {
      if (log_) log_->checkpoint_failed(step_, saved->error());
      failed_save_ = saved->error();
    }
  }
}

Json Trainer::configuration_json() const {
  Json json = Json::object();
  json["config"] = config_text(config_);
  json["model"] = to_hugging_face_json(model_, compute_dtype(runner_->spec().update.precision));
  json["tokenizer"] = fs::absolute(config_.data.tokenizer).string();
  return json;
}

// A copy beside the run, so that its checkpoints can be exported wherever the folder is moved.
void Trainer::keep_tokenizer() const {
  const fs::path folder = fs::path(config_.run.dir) / "tokenizer";
  fs::create_directories(folder);
  for (const fs::path& file : tokenizer_->files()) {
    write_file_atomic(folder / file.filename(), read_file(file));
  }
}

}  // namespace skein
