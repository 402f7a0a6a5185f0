// skein train CONFIG.toml [--set section.key=value]...
// skein train CONFIG.toml [--set ...] --validate-only [--json]
//
// Each worker is a process. This one is a worker that a launcher (torchrun, Slurm, ...) or
// run_workers started, or the parent that starts the workers, or the only worker.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <mutex>
#include <optional>

#include "skein/base/exception.h"
#include "skein/base/files/paths.h"
#include "skein/base/machine/machine.h"
#include "skein/base/shared/heartbeat.h"
#include "skein/base/text/log.h"
#include "skein/base/threads/batch_scheduling.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/train/train_sweep.h"
#include "skein/cli/train/validate_only.h"
#include "skein/config/data_feed.h"
#include "skein/config/fields.h"
#include "skein/config/length.h"
#include "skein/config/node_range.h"
#include "skein/launch/node/stacks.h"
#include "skein/launch/node/start_workers.h"
#include "skein/launch/node/workers.h"
#include "skein/launch/place/agreement.h"
#include "skein/launch/place/rank_threads.h"
#include "skein/launch/place/rendezvous_root.h"
#include "skein/launch/place/replica_address.h"
#include "skein/objects/store.h"
#include "skein/record/files/failure_record.h"
#include "skein/record/watch/on_call.h"
#include "skein/train/loop/training_loop.h"
#include "skein/train/start/decay_from_now.h"
#include "skein/train/start/memory_check.h"
#include "skein/train/start/resume.h"
#include "skein/train/start/run_folder.h"
#include "skein/weights/init_source.h"

namespace skein {
namespace {

struct TrainOptions {
  ConfigOptions config;
  SweepOptions sweep;
  std::optional<int64_t> decay_from_now;  // its steps; 0: those that are left
  bool only_validates = false;
  bool json = false;
};

void check_folders(const Config& config) {
  require_writable_folder(config.run.dir, "run.dir");
  const std::string& checkpoints = config.checkpoint.dir;
  if (is_object_url(checkpoints)) {
    require_store(checkpoints, "checkpoint.dir");
  } else if (!checkpoints.empty()) {
    require_writable_folder(checkpoints, "checkpoint.dir");
  }
  check_copies(config);
}

DecoderConfig model_to_train(const Config& config) {
  const auto tokenizer = load_tokenizer(config.data.tokenizer, "data.tokenizer");
  return model_of(config, tokenizer->vocab_size());
}

// With how many of the machines that launch.nodes allows the run can be laid out.
std::vector<int> usable_host_counts(const Config& config, const NodeRange& nodes) {
  const DecoderConfig model = model_to_train(config);
  std::vector<int> counts;
  std::optional<Error> refusal;
  for (int64_t count = nodes.least; count <= nodes.most; ++count) {
    try {
      parallel_layout(config, model, count * config.launch.workers, 0);
      counts.push_back(static_cast<int>(count));
    } catch (const Error& error) {
      refusal = error;
    }
  }
  if (counts.empty()) throw *refusal;
  return counts;
}

// Checks what can be refused before the run folder is touched, and returns the numbers of machines
// that will do. A checkpoint's reduction width may still be refused later.
std::vector<int> check_start(const Config& config) {
  training_backend(config);
  require_corpora(config);
  require_resume(config);
  const NodeRange nodes = *parse_node_range(config.launch.nodes);
  if (nodes.most > 1) return usable_host_counts(config, nodes);
  const DecoderConfig model = model_to_train(config);
  parallel_layout(config, model, config.launch.workers, 0);
  check_memory_of_workers(config, model, config.launch.workers);
  return {1};
}

// Adds what to do where a disk was full before the first step. Memory that lacks is told elsewhere.
Error with_advice(const Error& error) {
  const std::string what = error.what();
  const bool is_disk =
      what.find(errno_text(ENOSPC)) != what.npos || what.find(errno_text(EDQUOT)) != what.npos;
  if (!is_disk) return error;
  return Error(error.code(),
               what + "; make room there, or set run.dir or checkpoint.dir to another disk");
}

// A launcher that starts one process a machine, where launch.nodes asks for several machines,
// starts their supervisors. Processes of other launchers are ranks.
bool supervises(const RankInfo& rank_info, const LaunchConfig& launch) {
  return rank_info.launcher != "skein" && rank_info.local_size == 1 && rank_info.size > 1 &&
         launch.nodes != "1";
}

// Whether a process that no launcher started starts the workers, and does not train itself.
bool has_supervisor(const LaunchConfig& launch) {
  return launch.workers > 1 || launch.nodes != "1" || launch.supervise;
}

void start_log(const Config& config, const RankInfo& rank_info, bool trains) {
  const fs::path file = rank_log(config.run.dir, rank_info.rank);
  make_folders(file.parent_path());
  // The parent already redirects standard error of the other ranks to this file.
  const bool is_redirected = rank_info.parent_pid != 0 && rank_info.rank > 0;
  log::start(is_redirected ? "" : file.string());
  if (const int64_t workers = workers_per_process(config); workers > 1) {
    log::info_to_file(fmt::format("ranks {} to {} of {} on {}, process {}",
                                  rank_info.rank * workers, (rank_info.rank + 1) * workers - 1,
                                  rank_info.size * workers, node_name(), ::getpid()));
  } else if (rank_info.size > 1) {
    log::info_to_file(fmt::format("rank {} of {} on {}, process {}", rank_info.rank, rank_info.size,
                                  node_name(), ::getpid()));
  }
  if (rank_info.heartbeats >= 0) answer_with_stacks(file);
  if (rank_info.rank > 0 || rank_info.generation > 1 || !trains) return;
  rank_info.parent_pid != 0 ? log::info_to_file(run_line(config))
                            : log::info("{}", run_line(config));
  if (rank_info.parent_pid == 0) tell_cores(config, rank_info.local_size);
}

struct Met {
  std::unique_ptr<Communicator> world;
  std::shared_ptr<const JobSecret> secret;  // null: there is one rank
};

Met meet(const Config& config, const RankInfo& rank_info) {
  const double timeout_s = config.launch.collective_timeout_s;
  WorldOptions options = {.rank = rank_info.rank,
                          .size = rank_info.size,
                          .timeout_s = timeout_s,
                          .start_timeout_s = timeout_s};
  if (rank_info.size > 1) {
    const RendezvousRoot root = root_of(config, /*is_under_way=*/rank_info.parent_pid != 0);
    when_store_answers(timeout_s, [&] { options.store = root.store->open(rank_info.start_id); });
    options.rendezvous = options.store->text();
    options.secret = root.secret;
  }
  return {.world = make_world(options), .secret = options.secret};
}

std::optional<ReplicaPlace> replica_place(const RankInfo& rank_info, const JobSecret* secret) {
  if (rank_info.replicas.empty()) return std::nullopt;
  ReplicaPlace place = ReplicaPlace::parse(rank_info.replicas);
  if (secret != nullptr) place.key = replica_key(*secret);
  return place;
}

// Whether this process removes what its ranks left in etcd: no supervisor does.
bool is_last_to_leave(const Config& config, const RankInfo& rank_info) {
  return rank_info.rank == 0 && rank_info.size > 1 && rank_info.parent_pid == 0 &&
         is_etcd_address(config.launch.rendezvous);
}

// The signals of this process, handled from when its first rank has met the others.
class ProcessSignals {
 public:
  explicit ProcessSignals(bool is_first) : is_first_(is_first) {}
  StopSignals& handle() {
    std::call_once(once_, [&] {
      const bool is_supervised = heartbeat::has_supervisor();
      signals_.emplace(
          StopSignals::Options{.tells = is_first_ && !is_supervised, .ends = !is_supervised});
    });
    return *signals_;
  }

 private:
  const bool is_first_;
  std::once_flag once_;
  std::optional<StopSignals> signals_;
};

int train(const Config& config, const RankInfo& rank_info, const TrainOptions& options,
          ProcessSignals& process_signals) {
  const BatchScheduling scheduling(BatchScheduling::kComputes);
  const auto [world, secret] = meet(config, rank_info);
  if (rank_info.size > 1) {
    Config compared = config;
    compared.plan = {};  // training does not read it
    check_agreement(*world, {{"configuration", config_text(compared)}, {"program", program_id()}});
  }
  bool trains = false;
  try {
    const Launched launched = {.generation = rank_info.generation,
                               .at_seconds = static_cast<double>(rank_info.launched_ms) / 1000,
                               .waited_seconds = static_cast<double>(rank_info.waited_ms) / 1000,
                               .only_validates = options.only_validates};
    StopSignals& signals = process_signals.handle();
    PreparedRun run(config, *world,
                    {.start_id = rank_info.start_id,
                     .local_rank = rank_info.local_rank,
                     .replicas = replica_place(rank_info, secret.get()),
                     .record = launched});
    TrainingLoop loop(run, signals);
    if (options.only_validates) {
      const std::vector<Validated> sets = loop.validate_only();
      if (rank_info.rank == 0) print_validated(loop.weights(), sets, options.json);
      return kExitDone;
    }
    trains = true;
    const TrainOutcome outcome = loop.run();
    if (outcome == TrainOutcome::kRegrouped) return kExitRegroup;
    return outcome == TrainOutcome::kStopped ? kExitRequeue : kExitDone;
  } catch (const std::exception& exception) {
    // If this program started the workers, the parent records the failure.
    const Error error = trains ? to_error(exception) : with_advice(to_error(exception));
    // The ranks that are other threads of this process do not see it end.
    if (workers_per_process(config) > 1) world->end(error.what());
    if (rank_info.rank == 0 && rank_info.parent_pid == 0 && (trains || !is_mistake(error.code()))) {
      record_failure(config.run.dir, rank_info.rank, error);
    }
    if (trains && rank_info.launcher.empty() && !is_mistake(error.code())) {
      log::info("nothing starts this worker again: launch.supervise = true would");
    }
    throw error;
  }
}

// What is trained, or where it validates only, what stands for it.
struct TrainStart {
  NamedConfig options;  // for other workers
  Config config;
  std::vector<std::string> told;  // lines to say first
  std::optional<ValidationPlace> place;
};

void prepare(const TrainOptions& options, const std::optional<RankInfo>& found, TrainStart& start) {
  start.options = options.config;
  start.config = load_config(start.options.path, start.options.overrides);
  check_own_folder(start.options.path, start.options.overrides, start.config);
  start.told = use_own_copies(start.config, start.options.overrides);
  for (const std::string& note :
       {take_source_tokenizer(start.config),
        note_of_fork(start.options.path, start.options.overrides, start.config)}) {
    if (!note.empty()) start.told.push_back(note);
  }
  // The other workers of a validation are given what was prepared here.
  if (options.only_validates && !(found && found->parent_pid != 0)) {
    start.place.emplace(start.config, found);
    start.config = start.place->config();
    start.options = {.path = start.place->config_file(), .overrides = {}};
  }
  count_epochs(start.config, ConfigUse::kTrain);
  if (options.decay_from_now) {
    const auto settings = decay_from_now(start.config, *options.decay_from_now);
    auto& overrides = start.options.overrides;
    overrides.insert(overrides.end(), settings.begin(), settings.end());
  }
}

int train_or_validate(const TrainOptions& options, std::optional<RankInfo> found,
                      TrainStart& start) {
  Config& config = start.config;
  check_folders(config);
  Meeting meeting;
  if (options.only_validates) meeting.flags = {"--validate-only"};
  if (options.only_validates && options.json) meeting.flags.emplace_back("--json");
  if (found && supervises(*found, config.launch)) {
    meeting.launcher_start = found->start_id;
    found.reset();
  }
  if (found) check_workers(*found, worker_processes(config), config.launch.nodes);
  if (!found) meeting.host_counts = check_start(config);
  if (!found || found->parent_pid == 0) check_rendezvous_of(config);
  const bool several = !found && parse_node_range(config.launch.nodes)->most > 1;
  if (several) {  // before anything is made, and until what this start made is removed
    meeting.lock.emplace(rendezvous_text(config.launch.rendezvous, config.run.dir),
                         meeting.launcher_start);
  }
  std::optional<NewRunFolder> new_folder;
  if (!found || (found->rank == 0 && found->parent_pid == 0)) new_folder.emplace(config);
  if (several) new_folder->keep_logs();  // other machines may be using what lies there
  if (!found && has_supervisor(config.launch)) {
    return start_workers(start.options, config, meeting, start.told,
                         {.has_begun = [&] { return new_folder->has_begun(); },
                          .keep_logs = [&] { new_folder->keep_logs(); }});
  }
  const RankInfo alone = {.start_id = "alone"};
  const auto work = [&](const RankInfo& rank_info) {
    // What lies there now was saved by an earlier generation of this start.
    if (rank_info.generation > 1 && config.run.resume == "never") config.run.resume = "auto";
    start_log(config, rank_info, !options.only_validates);
    if (new_folder) say(start.told);
    std::optional<OnCall> on_call;
    if (rank_info.rank == 0 && rank_info.parent_pid == 0) on_call.emplace(config).lead(true);
    try {
      ProcessSignals signals(rank_info.rank == 0);
      const int code =
          run_ranks(ranks_of_process(rank_info, workers_per_process(config)),
                    [&](const RankInfo& rank) { return train(config, rank, options, signals); });
      if (is_last_to_leave(config, rank_info)) {
        remove_place(*root_of(config).store, rank_info.start_id);
      }
      return code;
    } catch (const std::exception& exception) {
      if (new_folder && !is_mistake(to_error(exception).code())) new_folder->keep_logs();
      throw;
    }
  };
  return run_as_worker(found.value_or(alone), config.launch.rendezvous, config.run.dir, work);
}

// An error for a text that is no whole number from 1.
std::string positive(std::string& text) { return whole_number_from(1, kMaxSteps)(text); }

int train_command(const TrainOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);  // a reader of the output may close its pipe
  if (!options.sweep.sweep.empty()) return train_sweep(options.config, options.sweep);
  const std::optional<RankInfo> found = rank_info_from_environment();
  TrainStart start;
  prepare(options, found, start);
  try {
    return train_or_validate(options, found, start);
  } catch (const Error& error) {
    if (start.place &&
        std::string_view(error.what()).find(start.config.run.dir) != std::string::npos) {
      start.place->keep();
    }
    throw;
  }
}

}  // namespace

void add_train_command(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand("train", "Train a model; run again to continue");
  options->config.add_to(*command, context);
  CLI::Option* validates =
      command->add_flag("--validate-only", options->only_validates,
                        "print the losses of the validation sets for the weights that training "
                        "would begin or continue with, and end; no run folder is made or changed");
  const auto steps = std::make_shared<std::string>();
  CLI::Option* decay =
      command
          ->add_option("--decay-from-now", *steps,
                       "from the newest checkpoint on the learning rate decays to the floor, over "
                       "STEPS (what is left of run.steps); recorded in the run")
          ->type_name("[STEPS]")
          ->expected(0, 1)
          ->check(CLI::Validator(
              [](std::string& text) { return text.empty() ? "" : positive(text); }, ""));
  CLI::Option* sweep =
      command
          ->add_option("--sweep", options->sweep.sweep,
                       "a run for each value, or combination of several, in run.dir/0000, 0001, …; "
                       "ends in a table; run again to continue")
          ->type_name("KEY=V1,V2,…")
          ->allow_extra_args(false)
          ->excludes(decay);
  command
      ->add_option("--side-by-side", options->sweep.side_by_side,
                   "runs of a sweep at a time, which share the cores; 1")
      ->check(whole_number_from(1, 1024))
      ->needs(sweep);
  sweep->excludes(validates);
  decay->excludes(validates);
  CLI::Option* json = command->add_flag(
      "--json", options->json, "of --validate-only and of --sweep: print one JSON document");
  command->callback([&context, options, decay, steps, sweep, validates, json] {
    if (json->count() > 0 && sweep->count() + validates->count() == 0) {
      throw CLI::RequiresError("--json", "--validate-only or --sweep");
    }
    options->sweep.json = options->json;
    context.computes = true;
    if (decay->count() > 0) {
      options->decay_from_now = steps->empty() ? 0 : std::stoll(*steps);
    }
    context.run = [options] { return train_command(*options); };
  });
}

}  // namespace skein
