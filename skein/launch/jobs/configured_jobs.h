// From the options of `skein launch` and a configuration to the job that trains it.
#pragma once

#include <string>
#include <vector>

#include "skein/config/named_config.h"
#include "skein/launch/jobs/job_set.h"
#include "skein/launch/jobs/slurm_script.h"

namespace skein {

struct LaunchOptions {
  NamedConfig config;
  std::string name, program;
  int64_t grace_s = 120, retries = 3;
  int64_t cpus = 0;  // 0: as the configuration needs

  std::string time;
  std::vector<std::string> sbatch;  // further options, each "--name=value"
  std::vector<std::string> sweep;   // "section.key=V1,V2,..."
  int64_t at_most = 0;

  std::string image, space, shared_memory;
  std::vector<std::string> volumes;    // "CLAIM:/MOUNT"
  std::vector<std::string> resources;  // "NAME=QUANTITY"
};

struct SlurmLaunch {
  SlurmJob job;
  std::vector<fs::path> run_dirs;  // of each run
};

// Errors  kUsage for what a job that is started again could not go on with, for runs of a sweep
//         that need different nodes, and for a configuration that would be refused
SlurmLaunch slurm_launch(const LaunchOptions& options);

// Errors  kUsage for a missing image, for paths that lie on none of the volumes, and as above
JobSetRun job_set_run(const LaunchOptions& options);

}  // namespace skein
