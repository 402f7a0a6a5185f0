#include "skein/launch/node/start_workers.h"

#include <fmt/ranges.h>

#include <set>

#include "skein/base/files/paths.h"
#include "skein/base/machine/cores.h"
#include "skein/base/machine/machine.h"
#include "skein/base/text/log.h"
#include "skein/checkpoint/find/checkpoint_folder.h"
#include "skein/config/node_range.h"
#include "skein/launch/node/generation_log.h"
#include "skein/launch/node/workers.h"
#include "skein/launch/place/meeting_place.h"
#include "skein/objects/place.h"
#include "skein/objects/store.h"
#include "skein/record/files/events.h"
#include "skein/record/files/failure_record.h"
#include "skein/record/log/unsaved_stop.h"
#include "skein/record/watch/on_call.h"

namespace skein {
namespace {

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

// Records the failure in the run folder: as an event, and in logs that end without a message.
void tell_failure(const Config& config, const WorkerError& error) {
  record_failure(config.run.dir, error.rank(), error);
  for (const int rank : std::set<int>{0, error.rank()}) {
    const fs::path file = rank_log(config.run.dir, rank);
    if (rank == error.rank() && error.in_its_log()) continue;
    if (error.code() != ErrorCode::kBusy && fs::exists(file)) log::append_error(file, error.what());
  }
}

// Of several machines, one where the address of [log] prometheus cannot be had trains all the same.
void watch(OnCall& on_call, const GenerationBegins& begins, int64_t hosts_wanted) {
  const GenerationRecord& generation = begins.record;
  try {
    on_call.lead(begins.leads, {.generation = generation.number,
                                .hosts = std::ssize(generation.members),
                                .hosts_wanted = hosts_wanted});
  } catch (const Error& error) {
    log::warn("{}; training continues without", error.what());
  }
}

void start_supervisor_log(const Config& config, bool trains) {
  const fs::path log =
      fs::path(config.run.dir) / "logs" / fmt::format("supervisor-{}.log", node_name());
  make_folders(log.parent_path());
  log::start(log.string());
  if (trains) log::info("{}", run_line(config));
  tell_cores(config, config.launch.workers);
}

WorkerLaunch launch_of(const NamedConfig& named, const Config& config,
                       const std::vector<std::string>& flags) {
  WorkerLaunch launch;
  launch.num_workers = static_cast<int>(worker_processes(config));
  launch.arguments = {"train", place_text(named.path)};
  for (const std::string& text : named.overrides) {
    launch.arguments.insert(launch.arguments.end(), {"--set", text});
  }
  if (config.launch.health_checks) {
    launch.check_arguments = launch.arguments;
    launch.check_arguments.front() = "check";
    launch.check_arguments.push_back("--short");
  }
  launch.arguments.insert(launch.arguments.end(), flags.begin(), flags.end());
  launch.run_dir = config.run.dir;
  launch.rendezvous = config.launch.rendezvous;
  launch.threads = static_cast<int>(config.device.threads);
  launch.stages = static_cast<int>(config.parallel.pipeline);
  launch.hang = static_cast<Millis>(config.launch.hang_timeout_s * 1000);
  launch.keeps_replicas =
      config.checkpoint.memory_every_steps != 0 && workers_per_process(config) == 1;
  launch.membership.max_restarts = static_cast<int>(config.launch.max_restarts);
  return launch;
}

EtcdAccess etcd_access(const LaunchConfig& launch) {
  if (!is_etcd_address(launch.rendezvous)) return {};
  return find_etcd_access({.ca_file = launch.etcd_ca_file,
                           .cert_file = launch.etcd_cert_file,
                           .key_file = launch.etcd_key_file,
                           .user = launch.etcd_user,
                           .password_file = launch.etcd_password_file},
                          is_encrypted_address(launch.rendezvous));
}

void join_machines(const Config& config, const Meeting& meeting, const RendezvousRoot& root,
                   WorkerLaunch& launch) {
  const NodeRange nodes = *parse_node_range(config.launch.nodes);
  if (std::ssize(meeting.host_counts) < nodes.most - nodes.least + 1) {
    log::warn("launch.nodes is \"{}\", but this run can only be laid out over {} machines",
              config.launch.nodes, fmt::join(meeting.host_counts, ", "));
  }
  MeetingPlace place;
  when_store_answers(static_cast<double>(launch.membership.wait_for_hosts) / 1e3,
                     [&] { place = meeting_place(*root.store, meeting.launcher_start); });
  launch.membership.min_hosts = static_cast<int>(nodes.least);
  launch.membership.max_hosts = static_cast<int>(nodes.most);
  launch.membership.host_counts = meeting.host_counts;
  launch.host = meeting.lock->host();
  launch.succeeds = meeting.lock->succeeds();
  launch.start_id = place.start_id;
  launch.store = place.store;
  launch.secret = root.secret;
  launch.lock = meeting.lock->file();
}

}  // namespace

void tell_cores(const Config& config, int64_t workers) {
  if (!has_tight_quota()) return;
  log::info("cores: {}", cores_text());
  const int64_t threads = config.device.threads * workers;
  if (threads > num_cores()) {
    log::warn(
        "device.threads is {}, which makes {} threads on this machine: they wait for each other "
        "where only {} can run; 0 takes what there is",
        config.device.threads, threads, num_cores());
  }
}

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
             ? fmt::format("continuing the run in {}", folder)
             : fmt::format("continuing the run in {}, whose newest checkpoint is of step {}",
                           folder, newest);
}

void say(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) log::info("{}", line);
}

RendezvousRoot root_of(const Config& config, bool is_under_way) {
  EtcdAccess access = etcd_access(config.launch);
  access.is_under_way = is_under_way;
  return rendezvous_root(config.launch.rendezvous, config.launch.secret_file, config.run.dir,
                         access);
}

void check_rendezvous_of(const Config& config) {
  check_rendezvous(config.launch.rendezvous, config.run.dir, etcd_access(config.launch));
}

int start_workers(const NamedConfig& named, const Config& config, const Meeting& meeting,
                  const std::vector<std::string>& copies, const MadeFolder& folder) {
  WorkerLaunch launch = launch_of(named, config, meeting.flags);
  launch.on_failure = [&](const WorkerFailure& failure) {
    record_failure(config.run.dir, failure.rank, Error(failure.code, failure.message),
                   /*fatal=*/false);
  };
  start_supervisor_log(config, meeting.flags.empty());
  const RendezvousRoot root = root_of(config);
  if (is_etcd_address(config.launch.rendezvous)) launch.ranks_meet = root.store;
  const NodeRange nodes = *parse_node_range(config.launch.nodes);
  GenerationLog generations(config.run.dir);
  OnCall on_call(config);
  if (nodes.most == 1) on_call.lead(true);
  bool leads = false;
  launch.on_unsaved_stop = [&](int64_t saved_step) {
    if (leads) record_unsaved_stop(config.run.dir, saved_step);
  };
  launch.on_generation = [&](const GenerationBegins& begins) {
    leads = begins.leads;
    generations.begin(begins);
    watch(on_call, begins, nodes.most);
  };
  launch.on_straggler = [&](const Straggler& straggler) { record_straggler(config, straggler); };
  launch.on_wrong_bits = [&](const std::string& reason, bool persistent) {
    record_wrong_bits(config, reason, persistent);
  };
  if (meeting.lock) join_machines(config, meeting, root, launch);
  say(copies);
  try {
    return run_workers(launch);
  } catch (const WorkerError& error) {
    log::error_to_file(error.what());
    // A mistake before training is reported in full on the terminal. Other failures are recorded,
    // and the logs are kept, since they may explain them.
    if (folder.has_begun() || !is_mistake(error.code())) {
      generations.show_last_lines(error.what());
      tell_failure(config, error);
      folder.keep_logs();
      throw;
    }
    const std::string text = error.what();
    throw Error(error.code(), text.substr(0, text.rfind(" (log: ")));
  } catch (const Error& error) {  // of another machine, or of this process: the logs may explain it
    log::error_to_file(error.what());
    generations.show_last_lines(error.what());
    folder.keep_logs();
    throw;
  }
}

}  // namespace skein
