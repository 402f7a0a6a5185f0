// What the machine of rank 0 writes down and says when workers are started again: the generation,
// the machines that it lost and took in, and the last lines of the rank that failed.
#pragma once

#include <optional>
#include <string>

#include "skein/base/files/file.h"
#include "skein/launch/node/workers.h"

namespace skein {

class GenerationLog {
 public:
  explicit GenerationLog(const fs::path& run_dir) : run_dir_(run_dir) {}

  // Before the workers of a generation start, on each machine of it. Never throws: if it cannot
  // write, it logs that.
  void begin(const GenerationBegins& begins) noexcept;
  // Shows the end of the log of the rank that `failure` names, unless that is rank 0, whose output
  // went to this terminal. On the machine of rank 0 alone.
  void show_last_lines(const std::string& failure) const;

 private:
  void record(const GenerationBegins& begins) const;

  const fs::path run_dir_;
  std::optional<GenerationRecord> former_;
  bool leads_ = false;
};

// The rank of "... rank 3 was killed ...", if there is one.
std::optional<int> rank_in(const std::string& failure);

}  // namespace skein
