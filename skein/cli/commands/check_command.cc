// skein check [CONFIG.toml] [--set section.key=value]... [--json]
//
// Alone, this process checks the machine. With several workers, or under a launcher, it checks as
// one of them, or starts those of this machine. With --short it is the child of a supervisor
// (launch/node/host_check.h) and checks what is quick.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "skein/base/exception.h"
#include "skein/base/files/temporary_folder.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/shared/print.h"
#include "skein/config/length.h"
#include "skein/health/rank_checks.h"
#include "skein/launch/node/worker_cores.h"
#include "skein/launch/node/worker_process.h"
#include "skein/launch/node/workers.h"
#include "skein/plan/this_machine.h"
#include "skein/weights/init_source.h"

namespace skein {
namespace {

struct CheckOptions {
  ConfigOptions config;
  std::string meet;  // the folder in which ranks find each other
  bool json = false, is_short = false;
};

// 1 where one of them died; its place in the world ends the others.
int wait_for(std::vector<WorkerProcess>& workers) {
  int code = kExitDone;
  for (size_t running = workers.size(); running > 0;) {
    siginfo_t ended{};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT) < 0 && errno != EINTR) break;
    for (WorkerProcess& worker : workers) {
      const std::optional<int> status = worker.poll();
      if (!status) continue;
      --running;
      if (WIFSIGNALED(*status)) {
        fmt::print(stderr, "skein: the check of rank {} was killed by signal {}\n", worker.rank(),
                   WTERMSIG(*status));
      }
      code = std::max(code, WIFEXITED(*status) ? WEXITSTATUS(*status) : kExitFailed);
    }
  }
  return code;
}

// `machine`: this process's rank under a launcher that starts one process a machine.
int start_ranks(const CheckOptions& options, const Config& config, const std::string& meet,
                const RankInfo& machine) {
  const auto num_workers = static_cast<int>(config.launch.workers);
  const std::vector<int> cores = usable_cores();
  std::vector<WorkerProcess> workers;
  for (int index = 0; index < num_workers; ++index) {
    WorkerProcess::Start start;
    const int rank = machine.rank * num_workers + index;
    start.arguments = {"check", place_text(options.config.path), "--meet", meet};
    for (const std::string& text : options.config.overrides) {
      start.arguments.insert(start.arguments.end(), {"--set", text});
    }
    if (options.json) start.arguments.push_back("--json");
    start.environment = {
        fmt::format("SKEIN_RANK={}", rank),
        fmt::format("SKEIN_SIZE={}", machine.size * num_workers),
        fmt::format("SKEIN_LOCAL_RANK={}", index),
        fmt::format("SKEIN_LOCAL_SIZE={}", num_workers),
        "SKEIN_START_ID=check",
        fmt::format("SKEIN_PARENT_PID={}", ::getpid()),
        fmt::format("OMP_NUM_THREADS={}", share_cores(config, num_workers).threads)};
    ::sigprocmask(SIG_BLOCK, nullptr, &start.signal_mask);
    const BoundToCores bound(cores_of_worker(cores, index, num_workers));
    workers.emplace_back(rank, start);
  }
  return wait_for(workers);
}

// Rank 0 tells.
int tell_as_rank(const std::optional<Config>& config, const RankInfo& rank_info,
                 const std::string& meet, bool json) {
  const std::vector<RankHealth> all = check_as_rank(config, rank_info, meet);
  if (rank_info.rank == 0 && json) print_json(health_to_json(all));
  if (rank_info.rank == 0 && !json) print_text(stdout, health_text(all));
  return all_well(all) ? kExitDone : kExitFailed;
}

// A line a check, as it goes.
int tell_short(const std::optional<Config>& config) {
  const auto begins = [](const Check& check) {
    fmt::print("{}: ", check.name);
    std::fflush(stdout);
  };
  const auto ends = [](const CheckResult& result) {
    print_line(stdout, "{}", outcome_text(result));
  };
  return check_short(config, begins, ends) ? kExitDone : kExitFailed;
}

int check_command(const CheckOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  std::optional<Config> config;
  if (!options.config.path.empty()) {
    config = load_config(options.config.path, options.config.overrides, ConfigUse::kPlan);
    if (!options.is_short && config->run.epochs > 0) take_source_tokenizer(*config);
    if (!options.is_short) count_epochs(*config, ConfigUse::kPlan);
  } else if (!options.config.overrides.empty()) {
    fail(ErrorCode::kUsage, "--set {} changes a configuration: name one before it",
         options.config.overrides.front());
  }
  if (options.is_short) {
    if (const char* parent = std::getenv("SKEIN_PARENT_PID")) die_with_parent(std::atoll(parent));
    return tell_short(config);
  }
  const std::optional<RankInfo> found = rank_info_from_environment();
  if (found && found->parent_pid != 0) {
    die_with_parent(found->parent_pid);
    return tell_as_rank(config, *found, options.meet, options.json);
  }
  if (found && !config) {
    fail(ErrorCode::kUsage,
         "{} started {} processes: name a configuration, whose run folder tells "
         "them where to meet",
         found->launcher, found->size);
  }
  if (found) {
    const std::string meet =
        rendezvous_folder(config->launch.rendezvous, config->run.dir, "check-" + found->start_id)
            .string();
    fs::create_directories(meet);
    const bool is_machine = found->local_size == 1 && config->launch.workers > 1;
    const int code = is_machine ? start_ranks(options, *config, meet, *found)
                                : tell_as_rank(config, *found, meet, options.json);
    std::error_code ignored;
    if (found->rank == 0) fs::remove_all(meet, ignored);
    return code;
  }
  if (config && config->launch.workers > 1) {
    const TemporaryFolder meet("check");
    return start_ranks(options, *config, meet.path(), {});
  }
  return tell_as_rank(config, {}, "", options.json);
}

}  // namespace

void add_check_command(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand("check", "Tell whether this machine is fit to train");
  options->config.add_to(*command, context);
  command->get_option("CONFIG.toml")->required(false);
  command->add_flag("--json", options->json, "print one JSON document");
  command->add_flag("--short", options->is_short)->group("");
  command->add_option("--meet", options->meet)->group("");
  command->callback(
      [&context, options] { context.run = [options] { return check_command(*options); }; });
}

}  // namespace skein
