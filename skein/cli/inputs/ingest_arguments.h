// What the commands that make corpora of inputs have in common: their options, shards, job arrays,
// progress and report.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "skein/cli/inputs/chat_arguments.h"
#include "skein/cli/shared/command.h"
#include "skein/prepare/ingest.h"

namespace skein {

struct IngestArguments {
  std::vector<std::string> inputs;
  Place out, validation_out;
  std::string work;
  std::string shard_index;  // "i/n"
  bool slurm = false;
  std::optional<int64_t> num_shards, num_machines;
  IngestOptions ingest;
  ChatArguments chat;  // of `ingest` alone
};

void add_ingest_arguments(CLI::App& command, IngestArguments& options);

// Makes the corpus or the shards, or prints the job array, and reports to standard error.
// `command` is how it is called, with all options that are not IngestArguments, for a task of the
// array; `on_report` is called for each corpus that is there.
using OnIngestReport = std::function<void(const fs::path& out, const IngestReport& report)>;
void run_ingest(IngestArguments& options, const std::vector<std::string>& command,
                const OnIngestReport& on_report = {});

}  // namespace skein
