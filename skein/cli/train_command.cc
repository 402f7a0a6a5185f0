// skein train CONFIG.toml [--set section.key=value]…
//
// One process a worker. A launcher started this one (torchrun, Slurm, …), or run_workers did, or it
// is to start them, or it is alone.
#include <memory>

#include "skein/base/batch_scheduling.h"
#include "skein/base/log.h"
#include "skein/base/paths.h"
#include "skein/cli/commands.h"
#include "skein/launch/agreement.h"
#include "skein/launch/workers.h"
#include "skein/train/config_notes.h"
#include "skein/train/memory_check.h"
#include "skein/train/trainer.h"

namespace skein {
namespace {

void check_folders(const Config& config) {
  require_writable_folder(config.run.dir, "run.dir");
  const std::string& checkpoints = config.checkpoint.dir;
  if (!checkpoints.empty() && !checkpoints.starts_with("s3://")) {
    require_writable_folder(checkpoints, "checkpoint.dir");
  }
}

// Refused before the run folder is touched. A checkpoint's reduction width may still be refused later.
void check_start(const Config& config) {
  const auto tokenizer = Tokenizer::load(config.data.tokenizer);
  const LlamaConfig model = model_of(config, tokenizer->vocab_size());
  parallel_layout(config, model, config.launch.workers, 0);
  check_memory_of_workers(config, model, config.launch.workers);
}

int start_workers(const ConfigOptions& options, const Config& config) {
  WorkerLaunch launch;
  launch.num_workers = static_cast<int>(config.launch.workers);
  launch.arguments = {"train", options.path};
  for (const std::string& text : options.overrides) {
    launch.arguments.insert(launch.arguments.end(), {"--set", text});
  }
  launch.run_dir = config.run.dir;
  launch.rendezvous = config.launch.rendezvous;
  launch.threads = static_cast<int>(config.device.threads);
  log::start();
  return run_workers(launch);
}

void start_log(const Config& config, const Place& place) {
  const fs::path file = rank_log(config.run.dir, place.rank);
  fs::create_directories(file.parent_path());
  // The parent has led standard error of the other ranks to that file already.
  const bool is_redirected = place.parent_pid != 0 && place.rank > 0;
  log::start(is_redirected ? "" : file.string());
  if (place.rank > 0) return;
  for (const std::string& note : settings_without_effect(config)) log::warn("{}", note);
}

int train(const Config& config, const Place& place, const fs::path& rendezvous) {
  const BatchScheduling scheduling(BatchScheduling::kComputes);
  const auto world = make_world({.rank = place.rank,
                                 .size = place.size,
                                 .rendezvous = rendezvous.string(),
                                 .timeout_s = config.launch.collective_timeout_s,
                                 .start_timeout_s = config.launch.collective_timeout_s});
  if (place.size > 1) {
    check_agreement(*world, {{"configuration", config_text(config)}, {"program", program_id()}});
  }
  const TrainOutcome outcome = Trainer(config, *world, place.start_id, place.local_rank).run();
  return outcome == TrainOutcome::kStopped ? kExitRequeue : kExitDone;
}

int train_command(const ConfigOptions& options) {
  const Config config = load_config(options.path, options.overrides);
  check_folders(config);
  const std::optional<Place> found = place_from_environment();
  if (found) check_workers(*found, config.launch.workers);
  if (!found && config.launch.nodes != "1") {
    fail(ErrorCode::kUnsupported,
         "launch.nodes is \"{}\": to train on several machines, start skein there with torchrun, "
         "Slurm or mpirun so far (docs/launching.md), or set launch.nodes to \"1\"",
         config.launch.nodes);
  }
  if (!found) check_start(config);
  if (!found && config.launch.workers > 1) return start_workers(options, config);
  const Place place = found.value_or(Place{.start_id = "alone"});
  start_log(config, place);
  const fs::path rendezvous =
      rendezvous_folder(config.launch.rendezvous, config.run.dir, place.start_id);
  return run_as_worker(place, rendezvous, [&] { return train(config, place, rendezvous); });
}

}  // namespace

void add_train_command(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<ConfigOptions>();
  CLI::App* command = app.add_subcommand("train", "Train a model; run again to continue");
  options->add_to(*command);
  command->callback(
      [&context, options] { context.run = [options] { return train_command(*options); }; });
}

}  // namespace skein
