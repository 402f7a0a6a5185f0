// `skein train CONFIG.toml --sweep KEY=V1,V2,...`: the runs of a sweep on this machine, one after
// the other or several side by side, each a `skein train` of its own in run.dir/0000, 0001, ....
//
// Again   the same command goes on with what is unfinished and leaves alone what is done
// Stop    SIGINT, SIGTERM and SIGUSR1 stop all runs, saved: exit code 75
// Output  a table of the runs on standard output, the lowest validation loss first (the lowest
//         training loss where there is no validation); with `json` the same as one document
// Errors  Error{kUsage} before anything is made: runs that need different corpora, a folder that
//         holds a run of other settings. A run that fails lets the others go on: exit code 1
#pragma once

#include <string>
#include <vector>

#include "skein/cli/shared/command.h"

namespace skein {

struct SweepOptions {
  std::vector<std::string> sweep;  // "section.key=V1,V2,..."
  int64_t side_by_side = 1;        // runs at a time
  bool json = false;
};

int train_sweep(const ConfigOptions& config, const SweepOptions& options);

}  // namespace skein
