// skein train CONFIG.toml [--set section.key=value]...
//
// Each worker is a process. This one is a worker that a launcher (torchrun, Slurm, ...) or
// run_workers started, or the parent that starts the workers, or the only worker.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <set>

#include "skein/base/batch_scheduling.h"
#include "skein/base/exception.h"
#include "skein/base/log.h"
#include "skein/base/machine.h"
#include "skein/base/paths.h"
#include "skein/checkpoint/checkpoint_folder.h"
#include "skein/cli/commands.h"
#include "skein/cli/generation_log.h"
#include "skein/config/config_length.h"
#include "skein/config/node_range.h"
#include "skein/launch/agreement.h"
#include "skein/launch/meeting_place.h"
#include "skein/launch/rendezvous_root.h"
#include "skein/launch/stacks.h"
#include "skein/launch/workers.h"
#include "skein/objects/object_store.h"
#include "skein/record/failure_record.h"
#include "skein/record/on_call.h"
#include "skein/train/memory_check.h"
#include "skein/train/run_folder.h"
#include "skein/train/trainer.h"

namespace skein {
namespace {

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

void record_straggler(const Config& config, const Straggler& straggler) {
  try {
    EventLog(config.run.dir)
        .append("straggler", {{"rank", straggler.rank},
                              {"host", straggler.host},
                              {"work_ms", static_cast<double>(straggler.work_us) / 1e3},
                              {"median_ms", static_cast<double>(straggler.median_us) / 1e3}});
  } catch (const std::exception& problem) {
    log::error("cannot write down that rank {} is slow: {}", straggler.rank, problem.what());
  }
}

void record_wrong_bits(const Config& config, const std::string& reason, bool persistent) {
  try {
    OrderedJson fields = {{"reason", reason}, {"persistent", persistent}};
    if (const std::optional<int> rank = rank_in(reason)) fields["rank"] = *rank;
    EventLog(config.run.dir).append("wrong_bits", fields);
  } catch (const std::exception& problem) {
    log::error("cannot write down \"{}\": {}", reason, problem.what());
  }
}

DecoderConfig model_to_train(const Config& config) {
  const auto tokenizer = load_tokenizer(config.data.tokenizer, "data.tokenizer");
  return model_of(config, tokenizer->vocab_size());
}

// Checks what can be refused before the run folder is touched. A checkpoint's reduction width may
// still be refused later.
void check_start(const Config& config) {
  const NodeRange nodes = *parse_node_range(config.launch.nodes);
  if (nodes.most > 1) return;  // usable_host_counts does
  const DecoderConfig model = model_to_train(config);
  parallel_layout(config, model, config.launch.workers, 0);
  check_memory_of_workers(config, model, config.launch.workers);
}

// Whether an error is the user's mistake; other errors are failures of the machine or of skein.
bool is_mistake(ErrorCode code) {
  return code != ErrorCode::kPeerLost && code != ErrorCode::kInternal && code != ErrorCode::kIo;
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

// Records the failure in the run folder: as an event, and in logs that end without a message.
void tell_failure(const Config& config, const WorkerError& error) {
  record_failure(config.run.dir, error.rank(), error);
  for (const int rank : std::set<int>{0, error.rank()}) {
    const fs::path file = rank_log(config.run.dir, rank);
    if (rank == error.rank() && error.in_its_log()) continue;
    if (error.code() != ErrorCode::kBusy && fs::exists(file)) log::append_error(file, error.what());
  }
}

// Where the run lies, and whether this start begins it: what to look for on any later day.
std::string run_line(const Config& config) {
  const std::string folder = absolute_path(config.run.dir);
  std::error_code ignored;
  if (config.run.resume == "never" || !fs::exists(fs::path(folder) / "config.toml", ignored)) {
    return fmt::format("a new run, in {}", folder);
  }
  int64_t newest = 0;
  const std::string checkpoints = checkpoint_dir(config);
  if (!is_object_url(checkpoints) && fs::is_directory(checkpoints, ignored)) {
    for (const CheckpointInfo& info : list_checkpoints(checkpoints)) {
      newest = std::max(newest, info.step);
    }
  }
  return newest == 0
             ? fmt::format("going on with the run in {}", folder)
             : fmt::format("going on with the run in {}, whose newest checkpoint is of step {}",
                           folder, newest);
}

void say(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) log::info("{}", line);
}

// With how many of the machines that launch.nodes allows the run can be laid out.
std::vector<int> usable_host_counts(const Config& config) {
  const NodeRange nodes = *parse_node_range(config.launch.nodes);
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
  if (std::ssize(counts) < nodes.most - nodes.least + 1) {
    log::warn("launch.nodes is \"{}\", but this run can only be laid out over {} machines",
              config.launch.nodes, fmt::join(counts, ", "));
  }
  return counts;
}

// Of several machines, one where the address of [log] prometheus cannot be had trains all the same.
void watch(OnCall& on_call, const GenerationBegins& begins, int64_t hosts_wanted) {
  const GenerationRecord& generation = begins.record;
  try {
    on_call.lead(begins.leads, {.generation = generation.number,
                                .hosts = std::ssize(generation.members),
                                .hosts_wanted = hosts_wanted});
  } catch (const Error& error) {
    log::warn("{}; training goes on without", error.what());
  }
}

RendezvousRoot root_of(const Config& config) {
  return rendezvous_root(config.launch.rendezvous, config.launch.secret_file, config.run.dir);
}

int start_workers(const ConfigOptions& options, const Config& config,
                  const std::string& launcher_start, const std::vector<std::string>& copies,
                  NewRunFolder& new_folder) {
  WorkerLaunch launch;
  launch.num_workers = static_cast<int>(config.launch.workers);
  launch.arguments = {"train", options.path};
  for (const std::string& text : options.overrides) {
    launch.arguments.insert(launch.arguments.end(), {"--set", text});
  }
  if (config.launch.health_checks) {
    launch.check_arguments = launch.arguments;
    launch.check_arguments.front() = "check";
    launch.check_arguments.push_back("--short");
  }
  launch.run_dir = config.run.dir;
  launch.rendezvous = config.launch.rendezvous;
  launch.threads = static_cast<int>(config.device.threads);
  launch.stages = static_cast<int>(config.parallel.pipeline);
  launch.hang = static_cast<Millis>(config.launch.hang_timeout_s * 1000);
  launch.keeps_replicas = config.checkpoint.memory_every_steps != 0;
  launch.membership.max_restarts = static_cast<int>(config.launch.max_restarts);
  launch.on_failure = [&](const WorkerFailure& failure) {
    record_failure(config.run.dir, failure.rank, Error(failure.code, failure.message),
                   /*fatal=*/false);
  };
  const fs::path log =
      fs::path(config.run.dir) / "logs" / fmt::format("supervisor-{}.log", node_name());
  make_folders(log.parent_path());
  log::start(log.string());
  log::info("{}", run_line(config));
  const RendezvousRoot root = root_of(config);
  if (is_etcd_address(config.launch.rendezvous)) launch.ranks_meet = root.store;
  const NodeRange nodes = *parse_node_range(config.launch.nodes);
  GenerationLog generations(config.run.dir);
  OnCall on_call(config);
  if (nodes.most == 1) on_call.lead(true);
  launch.on_generation = [&](const GenerationBegins& begins) {
    generations.begin(begins);
    watch(on_call, begins, nodes.most);
  };
  launch.on_straggler = [&](const Straggler& straggler) { record_straggler(config, straggler); };
  launch.on_wrong_bits = [&](const std::string& reason, bool persistent) {
    record_wrong_bits(config, reason, persistent);
  };
  std::optional<MeetingPlace> place;
  if (nodes.most > 1) {
    when_store_answers(static_cast<double>(launch.membership.wait_for_hosts) / 1e3,
                       [&] { place.emplace(*root.store, launcher_start); });
    launch.membership.min_hosts = static_cast<int>(nodes.least);
    launch.membership.max_hosts = static_cast<int>(nodes.most);
    launch.membership.host_counts = usable_host_counts(config);
    launch.host = place->host();
    launch.succeeds = place->succeeds();
    launch.start_id = place->start_id();
    launch.store = place->store();
    launch.secret = root.secret;
    launch.lock = place->lock();
    new_folder.keep_logs();  // other machines may be using it
  }
  say(copies);
  try {
    const int code = run_workers(launch);
    if (place) place->leave();
    return code;
  } catch (const WorkerError& error) {
    if (place) place->leave();
    log::error_to_file(error.what());
    // A mistake before training is reported in full on the terminal. Other failures are recorded,
    // and the logs are kept, since they may explain them.
    if (new_folder.has_begun() || !is_mistake(error.code())) {
      generations.show_last_lines(error.what());
      tell_failure(config, error);
      new_folder.keep_logs();
      throw;
    }
    const std::string text = error.what();
    throw Error(error.code(), text.substr(0, text.rfind(" (log: ")));
  } catch (const Error& error) {  // of another machine, or of this process: the logs may explain it
    if (place) place->leave();
    log::error_to_file(error.what());
    generations.show_last_lines(error.what());
    new_folder.keep_logs();
    throw;
  }
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

void start_log(const Config& config, const RankInfo& rank_info) {
  const fs::path file = rank_log(config.run.dir, rank_info.rank);
  make_folders(file.parent_path());
  // The parent already redirects standard error of the other ranks to this file.
  const bool is_redirected = rank_info.parent_pid != 0 && rank_info.rank > 0;
  log::start(is_redirected ? "" : file.string());
  if (rank_info.size > 1) {
    const std::string place = fmt::format("rank {} of {} on {}, process {}", rank_info.rank,
                                          rank_info.size, node_name(), ::getpid());
    is_redirected ? log::info("{}", place) : log::info_to_file(place);
  }
  if (rank_info.heartbeats >= 0) answer_with_stacks(file);
  if (rank_info.rank > 0 || rank_info.generation > 1) return;
  rank_info.parent_pid != 0 ? log::info_to_file(run_line(config))
                            : log::info("{}", run_line(config));
}

std::unique_ptr<Communicator> meet(const Config& config, const RankInfo& rank_info) {
  const double timeout_s = config.launch.collective_timeout_s;
  WorldOptions options = {.rank = rank_info.rank,
                          .size = rank_info.size,
                          .timeout_s = timeout_s,
                          .start_timeout_s = timeout_s};
  if (rank_info.size > 1) {
    const RendezvousRoot root = root_of(config);
    when_store_answers(timeout_s, [&] { options.store = root.store->open(rank_info.start_id); });
    options.rendezvous = options.store->text();
    options.secret = root.secret;
  }
  return make_world(options);
}

// Whether this process removes what its ranks left in etcd: no supervisor does.
bool is_last_to_leave(const Config& config, const RankInfo& rank_info) {
  return rank_info.rank == 0 && rank_info.size > 1 && rank_info.parent_pid == 0 &&
         is_etcd_address(config.launch.rendezvous);
}

int train(const Config& config, const RankInfo& rank_info) {
  const BatchScheduling scheduling(BatchScheduling::kComputes);
  const auto world = meet(config, rank_info);
  if (rank_info.size > 1) {
    check_agreement(*world, {{"configuration", config_text(config)}, {"program", program_id()}});
  }
  bool trains = false;
  try {
    const Launched launched = {.generation = rank_info.generation,
                               .at_seconds = static_cast<double>(rank_info.launched_ms) / 1000,
                               .waited_seconds = static_cast<double>(rank_info.waited_ms) / 1000};
    Trainer trainer(config, *world, rank_info.start_id, rank_info.local_rank, rank_info.replicas,
                    launched);
    trains = true;
    const TrainOutcome outcome = trainer.run();
    if (outcome == TrainOutcome::kRegrouped) return kExitRegroup;
    return outcome == TrainOutcome::kStopped ? kExitRequeue : kExitDone;
  } catch (const std::exception& exception) {
    // If this program started the workers, the parent records the failure.
    const Error error = trains ? to_error(exception) : with_advice(to_error(exception));
    if (rank_info.rank == 0 && rank_info.parent_pid == 0 && (trains || !is_mistake(error.code()))) {
      record_failure(config.run.dir, rank_info.rank, error);
    }
    if (trains && rank_info.launcher.empty() && !is_mistake(error.code())) {
      log::info("nothing starts this worker again: launch.supervise = true would");
    }
    throw error;
  }
}

int train_command(const ConfigOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);  // a reader of the output may close its pipe
  Config config = load_config(options.path, options.overrides);
  check_own_folder(options.path, options.overrides, config);
  const std::vector<std::string> copies = use_own_copies(config, options.overrides);
  count_epochs(config, ConfigUse::kTrain);
  check_folders(config);
  std::optional<RankInfo> found = rank_info_from_environment();
  std::string launcher_start;
  if (found && supervises(*found, config.launch)) {
    launcher_start = found->start_id;
    found.reset();
  }
  if (found) check_workers(*found, config.launch.workers, config.launch.nodes);
  if (!found) check_start(config);
  std::optional<NewRunFolder> new_folder;
  if (!found || (found->rank == 0 && found->parent_pid == 0)) new_folder.emplace(config);
  if (!found && has_supervisor(config.launch)) {
    return start_workers(options, config, launcher_start, copies, *new_folder);
  }
  const RankInfo alone = {.start_id = "alone"};
  const auto work = [&](const RankInfo& rank_info) {
    // What lies there now was saved by an earlier generation of this start.
    if (rank_info.generation > 1 && config.run.resume == "never") config.run.resume = "auto";
    start_log(config, rank_info);
    if (new_folder) say(copies);
    std::optional<OnCall> on_call;
    if (rank_info.rank == 0 && rank_info.parent_pid == 0) on_call.emplace(config).lead(true);
    try {
      const int code = train(config, rank_info);
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

}  // namespace

void add_train_command(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<ConfigOptions>();
  CLI::App* command = app.add_subcommand("train", "Train a model; run again to continue");
  options->add_to(*command, context);
  command->callback([&context, options] {
    context.computes = true;
    context.run = [options] { return train_command(*options); };
  });
}

}  // namespace skein
