// skein launch --slurm CONFIG.toml [--set section.key=value]... [--print] [--time TIME]
//              [--partition NAME] [--account NAME] [--gres LIST] [--sbatch OPTION]...
//              [--sweep KEY=V1,V2,...]... [--at-most N]
// skein launch --jobset CONFIG.toml [--set section.key=value]... --image IMAGE
//              --volume CLAIM:/MOUNT... [--print] [--namespace N] [--resource NAME=QUANTITY]...
#include <fmt/format.h>

#include <memory>

#include "skein/base/files/file.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/shared/print.h"
#include "skein/launch/jobs/configured_jobs.h"
#include "skein/launch/jobs/run_program.h"

namespace skein {
namespace {

struct LaunchCommand {
  ConfigOptions config;
  bool slurm = false, jobset = false, print = false;
  LaunchOptions job;
};

void add_slurm_options(CLI::App& command, CLI::Option* slurm, LaunchOptions& options) {
  const auto pass_on = [&](const char* name, const char* help) {
    command
        .add_option_function<std::string>(
            name,
            [&options, option = std::string(name)](const std::string& value) {
              options.sbatch.push_back(option + "=" + value);
            },
            help)
        ->type_name("NAME")
        ->needs(slurm);
  };
  command
      .add_option("--time", options.time,
                  "the most that the job may take, as sbatch takes it; it is requeued before")
      ->needs(slurm);
  pass_on("--partition", "the partition to run in");
  pass_on("--account", "the account to charge");
  pass_on("--gres", "what else each node must have, such as gpu:8");
  command
      .add_option("--sbatch", options.sbatch,
                  "a further option of sbatch, such as --sbatch=--exclusive; repeatable")
      ->type_name("OPTION")
      ->allow_extra_args(false)
      ->needs(slurm);
  CLI::Option* sweep =
      command
          .add_option("--sweep", options.sweep,
                      "a run for each of these values, as one job array; repeatable: for each "
                      "combination")
          ->type_name("KEY=V1,V2,...")
          ->allow_extra_args(false)
          ->needs(slurm);
  command.add_option("--at-most", options.at_most, "runs of a sweep at a time; 0: as many as fit")
      ->check(whole_number_from(0, 1'000'000))
      ->needs(sweep);
}

void add_jobset_options(CLI::App& command, CLI::Option* jobset, LaunchOptions& options) {
  command
      .add_option("--image", options.image,
                  "the container image, which holds skein; docs/installing.md makes one")
      ->needs(jobset);
  command
      .add_option(
          "--volume", options.volumes,
          "a claim and where pods see it: it holds the run folder and the corpus; repeatable")
      ->type_name("CLAIM:/MOUNT")
      ->allow_extra_args(false)
      ->needs(jobset);
  command.add_option("--namespace", options.space, "the namespace of the JobSet")->needs(jobset);
  command
      .add_option("--resource", options.resources,
                  "what a pod needs, such as memory=64Gi or nvidia.com/gpu=8; repeatable")
      ->type_name("NAME=QUANTITY")
      ->allow_extra_args(false)
      ->needs(jobset);
  command
      .add_option("--shared-memory", options.shared_memory,
                  "the most that /dev/shm may hold, such as 8Gi; default: the pod's memory")
      ->needs(jobset);
}

void add_options(CLI::App& command, CommandContext& context, LaunchCommand& launch) {
  LaunchOptions& options = launch.job;
  launch.config.add_to(command, context);
  CLI::Option* slurm = command.add_flag("--slurm", launch.slurm, "as a batch job of Slurm");
  add_slurm_options(command, slurm, options);
  CLI::Option* jobset =
      command.add_flag("--jobset", launch.jobset, "as a JobSet of Kubernetes")->excludes(slurm);
  add_jobset_options(command, jobset, options);
  command.add_option("--name", options.name, "of the job; default: that of run.dir");
  command
      .add_option("--grace", options.grace_s,
                  "how long before its end Slurm asks a job to save, or how long a pod may take to "
                  "save")
      ->type_name("SECONDS")
      ->check(whole_number_from(1, 65'535));  // what sbatch --signal takes
  command
      .add_option("--retries", options.retries,
                  "how often a run that failed is started again; a mistake never is")
      ->check(whole_number_from(0, 1'000));
  command
      .add_option("--cpus", options.cpus,
                  "cores of a node; default: launch.workers times device.threads")
      ->check(whole_number_from(1, 65'536));
  as_path_of_a_disk(
      command.add_option("--program", options.program,
                         "skein where the job runs; default: this one, in a JobSet `skein`"));
  command.add_flag("--print", launch.print, "print what would be submitted, and do nothing");
}

int launch_on_slurm(const LaunchOptions& options, bool only_prints) {
  const SlurmLaunch launch = slurm_launch(options);
  const std::string script = slurm_script(launch.job);
  if (only_prints) {
    fmt::print("{}", script);
    return kExitDone;
  }
  // Slurm makes no folders for what a job prints.
  for (const fs::path& run : launch.run_dirs) fs::create_directories(run / "logs");
  const fs::path file = launch.job.run_dir / "slurm.sh";
  write_file_atomic(file, script);
  const std::string job =
      run_program(std::vector<std::string>{"sbatch", "--parsable", file.string()}, "",
                  "expected Slurm's commands; --print shows the script");
  fmt::print("{}\n", job);
  const std::string folders = launch.run_dirs.size() == 1
                                  ? launch.run_dirs.front().string()
                                  : fmt::format("{} to {}", launch.run_dirs.front().string(),
                                                launch.run_dirs.back().string());
  print_line(stderr, "submitted {} as job {}; what it prints goes to logs/ in {}", file.string(),
             job, folders);
  return kExitDone;
}

int launch_on_kubernetes(const LaunchOptions& options, bool only_prints) {
  const JobSetRun run = job_set_run(options);
  const std::string manifest = job_set_manifest(run);
  if (only_prints) {
    fmt::print("{}", manifest);
    return kExitDone;
  }
  fmt::print("{}\n", run_program(std::vector<std::string>{"kubectl", "apply", "-f", "-"}, manifest,
                                 "expected it; --print shows the manifest"));
  return kExitDone;
}

int launch_command(const LaunchCommand& command) {
  if (command.slurm == command.jobset) {
    fail(ErrorCode::kUsage, "launch with what? Expected --slurm or --jobset");
  }
  LaunchOptions options = command.job;
  options.config = command.config;
  return command.slurm ? launch_on_slurm(options, command.print)
                       : launch_on_kubernetes(options, command.print);
}

}  // namespace

void add_launch_command(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<LaunchCommand>();
  CLI::App* command =
      app.add_subcommand("launch", "Submit the job of a cluster's scheduler that trains");
  add_options(*command, context, *options);
  command->callback(
      [&context, options] { context.run = [options] { return launch_command(*options); }; });
}

}  // namespace skein
