#include "skein/launch/jobs/configured_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <tuple>

#include "skein/base/error.h"
#include "skein/base/machine/program_path.h"
#include "skein/base/text/json_text.h"
#include "skein/config/config.h"
#include "skein/config/fields.h"
#include "skein/config/length.h"
#include "skein/config/node_range.h"
#include "skein/config/other_words.h"
#include "skein/launch/jobs/sweep.h"
#include "skein/objects/place.h"

namespace skein {
namespace {

// What a scheduler must give each node.
struct NodeNeeds {
  int64_t min_nodes = 1, max_nodes = 1, cpus = 1, gpus = 0;
  bool operator==(const NodeNeeds&) const = default;
};

// What a worker computes with of the cores that its node is asked for, so that it never takes more
// than that, as from a node whose cores nothing divides.
int64_t threads_of(const NodeNeeds& needs, const Config& config) {
  if (config.device.threads > 0) return config.device.threads;
  return std::max<int64_t>(1, needs.cpus / config.launch.workers);
}

NodeNeeds needs_of(const Config& config, const LaunchOptions& options) {
  const NodeRange nodes = *parse_node_range(config.launch.nodes);
  const int64_t threads = std::max<int64_t>(1, config.device.threads);
  return {.min_nodes = nodes.least,
          .max_nodes = nodes.most,
          .cpus = options.cpus > 0 ? options.cpus : config.launch.workers * threads,
          .gpus = config.device.kind == "cuda" ? config.launch.workers : 0};
}

Config load(const LaunchOptions& options, const std::vector<std::string>& settings) {
  std::vector<std::string> overrides = options.config.overrides;
  overrides.insert(overrides.end(), settings.begin(), settings.end());
  Config config = load_config(options.config.path, overrides);
  if (config.run.resume == "never") {
    fail(ErrorCode::kUsage,
         "[run] resume is \"never\", and a job that is started again has to resume from its "
         "checkpoints: expected \"auto\"");
  }
  return config;
}

bool sets(const std::vector<std::string>& settings, std::string_view key) {
  return std::any_of(settings.begin(), settings.end(), [&](const std::string& text) {
    return text.substr(0, text.find('=')) == key;
  });
}

std::string name_of(const LaunchOptions& options, const fs::path& run_dir) {
  return options.name.empty() ? run_dir.filename().string() : options.name;
}

std::vector<std::string> set_arguments(const std::vector<std::string>& settings) {
  std::vector<std::string> arguments;
  for (const std::string& text : settings) arguments.insert(arguments.end(), {"--set", text});
  return arguments;
}

// Every path that the pods need lies on a volume; their working folder is another than this one.
void place_on_volumes(Config& config, const JobSetRun& run) {
  for (const auto& [key, place] : config_paths(config)) {
    std::string& path = *place;
    const bool is_path = !path.empty() && path.find("://") == std::string::npos &&
                         !path.starts_with(kConfigDir) && path != "auto" && path != "never";
    if (!is_path) continue;
    path = absolute_path(path);
    const bool is_there =
        std::any_of(run.volumes.begin(), run.volumes.end(), [&](const JobSetRun::Volume& volume) {
          const fs::path inside = fs::path(path).lexically_relative(absolute_path(volume.mount));
          return !inside.empty() && *inside.begin() != "..";
        });
    if (is_there) continue;
    fail(ErrorCode::kUsage,
         "{} is '{}', which no pod would see: expected a path on a volume, --volume CLAIM:/MOUNT",
         key, path);
  }
}

// Whether the user says otherwise how many cores a node gives.
bool asks_for_cores(std::span<const std::string> sbatch) {
  return std::any_of(sbatch.begin(), sbatch.end(), [](const std::string& option) {
    return option.starts_with("--exclusive") || option.starts_with("--cpus-per-task") ||
           option.starts_with("-c");
  });
}

}  // namespace

SlurmLaunch slurm_launch(const LaunchOptions& options) {
  const auto combinations = sweep_settings(options.sweep, advice_on_word);
  const Config first = load(options, combinations.front());
  const NodeNeeds needs = needs_of(first, options);
  const std::string run_dir = absolute_path(first.run.dir);

  SlurmLaunch launch;
  SlurmJob& job = launch.job;
  const bool asks_for_gpus =
      std::any_of(options.sbatch.begin(), options.sbatch.end(), [](const std::string& option) {
        return option.starts_with("--gres") || option.starts_with("--gpus");
      });
  job = {.name = name_of(options, run_dir),
         .min_nodes = needs.min_nodes,
         .max_nodes = needs.max_nodes,
         .cpus_per_node = needs.cpus,
         .gpus_per_node = asks_for_gpus ? 0 : needs.gpus,
         .time = options.time,
         .options = options.sbatch,
         .grace_s = options.grace_s,
         .retries = options.retries,
         .working_dir = fs::current_path(),
         .run_dir = run_dir,
         .at_most = options.at_most};
  job.command = options.program.empty() ? program_words() : std::vector{options.program};
  job.command.insert(job.command.end(), {"train", place_text(absolute_path(options.config.path))});
  std::vector<std::string> settings = options.config.overrides;
  if (first.device.threads == 0 && !asks_for_cores(options.sbatch)) {
    settings.push_back(fmt::format("device.threads={}", threads_of(needs, first)));
  }
  const auto shared = set_arguments(settings);
  job.command.insert(job.command.end(), shared.begin(), shared.end());
  if (options.sweep.empty()) {
    launch.run_dirs = {run_dir};
    return launch;
  }
  for (size_t i = 0; i < combinations.size(); ++i) {
    std::vector<std::string> settings = combinations[i];
    if (sets(settings, "run.dir")) {
      fail(ErrorCode::kUsage, "--sweep sets run.dir, and gives each run its own folder in {}",
           run_dir);
    }
    if (needs_of(load(options, settings), options) != needs) {
      fail(ErrorCode::kUsage,
           "--sweep: a run with {} needs other nodes than one with {}, and all runs of a job array "
           "get the same: launch them apart",
           fmt::join(settings, " "), fmt::join(combinations.front(), " "));
    }
    launch.run_dirs.push_back(sweep_run_dir(run_dir, i));
    settings.push_back("run.dir=" + place_text(launch.run_dirs.back().string()));
    job.tasks.push_back(set_arguments(settings));
  }
  return launch;
}

JobSetRun job_set_run(const LaunchOptions& options) {
  Config config = load(options, {});
  const NodeNeeds needs = needs_of(config, options);
  if (options.image.empty()) {
    fail(ErrorCode::kUsage,
         "--jobset needs --image: a container image that holds skein; docs/installing.md, "
         "\"Container\", says how one is made");
  }
  JobSetRun run;
  run.name = options.name.empty() ? job_set_name(fs::path(config.run.dir).filename().string())
                                  : options.name;
  run.space = options.space;
  run.image = options.image;
  if (!options.program.empty()) run.program = options.program;
  run.min_nodes = needs.min_nodes;
  run.max_nodes = needs.max_nodes;
  run.cpus_per_node = needs.cpus;
  config.device.threads = threads_of(needs, config);
  run.gpus_per_node = needs.gpus;
  run.shared_memory = options.shared_memory;
  run.grace_s = options.grace_s;
  run.retries = options.retries;
  for (const std::string& text : options.volumes) run.volumes.push_back(parse_volume(text));
  for (const std::string& text : options.resources) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      fail(ErrorCode::kUsage, "--resource is \"{}\": expected NAME=QUANTITY, such as memory=64Gi",
           text.substr(0, 200));
    }
    const std::string name = text.substr(0, equals);
    if (name.ends_with("/gpu")) run.gpus_per_node = 0;  // said here instead
    run.resources.emplace_back(name, text.substr(equals + 1));
  }
  if (!config.model.hf_config.empty()) {
    run.model = exact_json(read_json(config.model.hf_config), config.model.hf_config, 2) + "\n";
    config.model.hf_config = fmt::format("{}/model.json", kConfigDir);
  }
  place_on_volumes(config, run);
  run.config = config_text(config);
  return run;
}

}  // namespace skein
