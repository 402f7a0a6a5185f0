#include "skein/launch/jobs/dedup_array.h"

#include <fmt/format.h>

#include "skein/base/text/shell_words.h"

namespace skein {

std::string dedup_array(const std::vector<std::string>& words, int64_t num_machines,
                        const std::string& threads) {
  const std::string command = shell_words(words);
  // The last job begins also where tasks have failed: it makes what they did not, or says why not.
  return fmt::format(
      "#!/bin/bash\n"
      "# bash THIS [OPTION OF SBATCH ...]: {1} machines sign, then one clusters and writes.\n"
      "set -euo pipefail\n"
      "signing=$(sbatch --parsable --array=0-{2} --ntasks=1 --requeue --job-name=skein-sign "
      "\"$@\" <<'JOB'\n"
      "#!/bin/bash\n"
      "exec {0} --shard-index \"$SLURM_ARRAY_TASK_ID/{1}\" --threads {3}\n"
      "JOB\n"
      ")\n"
      "sbatch --parsable --dependency=\"afterany:${{signing%%;*}}\" --ntasks=1 --requeue "
      "--job-name=skein-dedup \"$@\" <<'JOB'\n"
      "#!/bin/bash\n"
      "exec {0} --threads {3}\n"
      "JOB\n",
      command, num_machines, num_machines - 1, threads);
}

}  // namespace skein
