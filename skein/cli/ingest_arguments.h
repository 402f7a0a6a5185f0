// What the commands that make corpora of inputs have in common: their options, shards, job arrays,
// progress and report.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "skein/cli/command.h"
#include "skein/prepare/ingest.h"

namespace skein {

struct IngestArguments {
  std::vector<std::string> inputs;
  std::string out;
  std::string validation_out;
  std::string work;
  std::string invalid_utf8;  // empty: not given
  std::string format;
  std::string shard_index;  // "i/n"
  bool slurm = false;
  std::optional<int64_t> num_shards;
  IngestOptions ingest;
};

void add_ingest_arguments(CLI::App& command, IngestArguments& options);

// Makes the corpus or the shards, or prints the job array, and reports to standard error.
// `command` is how it is called, with all options that are not IngestArguments, for a task of the
// array; `on_report` is called for each corpus that was made.
void run_ingest(IngestArguments& options, const std::vector<std::string>& command,
                const std::function<void(const IngestReport&)>& on_report = {});

}  // namespace skein
