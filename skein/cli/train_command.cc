// skein train CONFIG.toml [--set section.key=value]...
//
// Each worker is a process. This one is a worker that a launcher (torchrun, Slurm, ...) or
// run_workers started, or the parent that starts the workers, or the only worker.
#include <csignal>
#include <memory>
#include <set>

#include "skein/base/batch_scheduling.h"
#include "skein/base/exception.h"
#include "skein/base/log.h"
#include "skein/base/paths.h"
#include "skein/cli/commands.h"
#include "skein/config/config_length.h"
#include "skein/config/config_notes.h"
#include "skein/launch/agreement.h"
#include "skein/launch/workers.h"
#include "skein/record/failure_record.h"
#include "skein/train/memory_check.h"
#include "skein/train/run_folder.h"
#include "skein/train/trainer.h"

namespace skein {
namespace {

void check_folders(const Config& config) {
  require_writable_folder(config.run.dir, "run.dir");
  const std::string& checkpoints = config.checkpoint.dir;
  if (!checkpoints.empty() && !checkpoints.starts_with("s3://")) {
    require_writable_folder(checkpoints, "checkpoint.dir");
  }
  check_copies(config);
}

// Checks what can be refused before the run folder is touched. A checkpoint's reduction width may
// still be refused later.
void check_start(const Config& config) {
  const auto tokenizer = load_tokenizer(config.data.tokenizer, "data.tokenizer");
  const DecoderConfig model = model_of(config, tokenizer->vocab_size());
  parallel_layout(config, model, config.launch.workers, 0);
  check_memory_of_workers(config, model, config.launch.workers);
}

// Whether an error is the user's mistake; other errors are failures of the machine or of skein.
bool is_mistake(ErrorCode code) {
  return code != ErrorCode::kPeerLost && code != ErrorCode::kInternal && code != ErrorCode::kIo;
}

// Records the failure in the run folder: as an event, and in logs that end without a message.
void tell_failure(const Config& config, const WorkerError& error) {
  record_failure(config.run.dir, error.rank(), error);
  for (const int rank : std::set<int>{0, error.rank()}) {
    const fs::path file = rank_log(config.run.dir, rank);
    if (rank == error.rank() && error.in_its_log()) continue;
    if (error.code() != ErrorCode::kBusy && fs::exists(file)) log::append_error(file, error.what());
  }
}

void say(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) log::info("{}", line);
}

int start_workers(const ConfigOptions& options, const Config& config,
                  const std::vector<std::string>& copies, NewRunFolder& new_folder) {
  WorkerLaunch launch;
  launch.num_workers = static_cast<int>(config.launch.workers);
  launch.arguments = {"train", options.path};
  for (const std::string& text : options.overrides) {
    launch.arguments.insert(launch.arguments.end(), {"--set", text});
  }
  launch.run_dir = config.run.dir;
  launch.rendezvous = config.launch.rendezvous;
  launch.threads = static_cast<int>(config.device.threads);
  launch.hang = static_cast<Millis>(config.launch.hang_timeout_s * 1000);
  launch.membership.max_restarts = static_cast<int>(config.launch.max_restarts);
  log::start();
  say(copies);
  try {
    return run_workers(launch);
  } catch (const WorkerError& error) {
    // A mistake before training is reported in full on the terminal. Other failures are recorded,
    // and the logs are kept, since they may explain them.
    if (new_folder.has_begun() || !is_mistake(error.code())) {
      tell_failure(config, error);
      new_folder.keep_logs();
      throw;
    }
    const std::string text = error.what();
    throw Error(error.code(), text.substr(0, text.rfind(" (log: ")));
  }
}

void start_log(const Config& config, const RankInfo& rank_info) {
  const fs::path file = rank_log(config.run.dir, rank_info.rank);
  fs::create_directories(file.parent_path());
  // The parent already redirects standard error of the other ranks to this file.
  const bool is_redirected = rank_info.parent_pid != 0 && rank_info.rank > 0;
  log::start(is_redirected ? "" : file.string());
  if (rank_info.rank > 0) return;
  for (const std::string& note : run_length_notes(config)) log::info("{}", note);
  for (const std::string& note : schedule_warnings(config)) log::warn("{}", note);
  for (const std::string& note : settings_without_effect(config)) log::warn("{}", note);
}

int train(const Config& config, const RankInfo& rank_info, const fs::path& rendezvous) {
  const BatchScheduling scheduling(BatchScheduling::kComputes);
  const auto world = make_world({.rank = rank_info.rank,
                                 .size = rank_info.size,
                                 .rendezvous = rendezvous.string(),
                                 .timeout_s = config.launch.collective_timeout_s,
                                 .start_timeout_s = config.launch.collective_timeout_s});
  if (rank_info.size > 1) {
    check_agreement(*world, {{"configuration", config_text(config)}, {"program", program_id()}});
  }
  bool trains = false;
  try {
    Trainer trainer(config, *world, rank_info.start_id, rank_info.local_rank);
    trains = true;
    const TrainOutcome outcome = trainer.run();
    return outcome == TrainOutcome::kStopped ? kExitRequeue : kExitDone;
  } catch (const std::exception& exception) {
    // If this program started the workers, the parent records the failure.
    const Error error = to_error(exception);
    if (rank_info.rank == 0 && rank_info.parent_pid == 0 && (trains || !is_mistake(error.code()))) {
      record_failure(config.run.dir, rank_info.rank, error);
    }
    throw;
  }
}

int train_command(const ConfigOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);  // a reader of the output may close its pipe
  Config config = load_config(options.path, options.overrides);
  check_own_folder(options.path, options.overrides, config);
  const std::vector<std::string> copies = use_own_copies(config, options.overrides);
  count_epochs(config, ConfigUse::kTrain);
  check_folders(config);
  const std::optional<RankInfo> found = rank_info_from_environment();
  if (found) check_workers(*found, config.launch.workers);
  if (!found && config.launch.nodes != "1") {
    fail(ErrorCode::kUnsupported,
         "launch.nodes is \"{}\": to train on several machines, start skein there with torchrun, "
         "Slurm or mpirun so far (docs/launching.md), or set launch.nodes to \"1\"",
         config.launch.nodes);
  }
  if (!found) check_start(config);
  std::optional<NewRunFolder> new_folder;
  if (!found || (found->rank == 0 && found->parent_pid == 0)) new_folder.emplace(config);
  if (!found && config.launch.workers > 1) {
    return start_workers(options, config, copies, *new_folder);
  }
  const RankInfo rank_info = found.value_or(RankInfo{.start_id = "alone"});
  // What lies there now was saved by an earlier generation of this start.
  if (rank_info.generation > 1 && config.run.resume == "never") config.run.resume = "auto";
  start_log(config, rank_info);
  if (new_folder) say(copies);
  const fs::path rendezvous =
      rendezvous_folder(config.launch.rendezvous, config.run.dir, rank_info.start_id);
  return run_as_worker(rank_info, rendezvous, [&] {
    try {
      return train(config, rank_info, rendezvous);
    } catch (const std::exception& exception) {
      if (new_folder && !is_mistake(to_error(exception).code())) new_folder->keep_logs();
      throw;
    }
  });
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
