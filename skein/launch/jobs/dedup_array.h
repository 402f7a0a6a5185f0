// The jobs that deduplicate on several machines, as `skein data dedup --slurm` prints them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace skein {

// A script for bash that submits a job array, each task of which signs a share, and a job that
// clusters and writes when they have ended. `words` is the command without what divides the work,
// `threads` what bash makes of its threads (reading_options.h).
// What bash is given goes to sbatch, for both jobs.
std::string dedup_array(const std::vector<std::string>& words, int64_t num_machines,
                        const std::string& threads);

}  // namespace skein
