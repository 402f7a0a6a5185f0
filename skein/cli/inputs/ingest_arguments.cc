#include "skein/cli/inputs/ingest_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/machine/program_path.h"
#include "skein/base/text/log.h"
#include "skein/base/text/shell_words.h"
#include "skein/base/text/units.h"
#include "skein/cli/inputs/left_out.h"
#include "skein/cli/inputs/reading_line.h"
#include "skein/cli/inputs/reading_options.h"
#include "skein/cli/inputs/sent_outputs.h"
#include "skein/cli/inputs/shard_option.h"
#include "skein/cli/inputs/stop_line.h"
#include "skein/cli/shared/command.h"
#include "skein/cli/shared/print.h"
#include "skein/data/corpus/completions.h"
#include "skein/objects/store.h"
#include "skein/prepare/ingest_shards.h"

namespace skein {
namespace {

constexpr int64_t kMaxTasks = 1000;  // of an array, unless Slurm's MaxArraySize was raised

ReadingLine::Status state_of(const PiecesProgress& progress) {
  return {fmt::format("{}/{} files  {} documents  {}", progress.num_files_done, progress.num_files,
                      format_count(static_cast<double>(progress.num_documents)),
                      format_bytes(progress.num_bytes)),
          progress.num_bytes, progress.num_input_bytes_done, progress.num_input_bytes};
}

void print_ingest_report(const IngestReport& report, const Place& out, const char* left_out) {
  if (log::on_terminal()) fmt::print(stderr, "\r\033[K");
  if (report.was_finished || report.was_made) return tell_made_before(out, report.was_made);
  print_line(stderr, "{}: {}, {} of text, from {}{}", out.text(),
             counted(report.num_documents, "document"), format_bytes(report.num_bytes),
             counted(report.num_files, "file"),
             report.num_documents == 0 ? ": an empty shard, which is a corpus all the same" : "");
  for (const std::string& line : report.restart) print_line(stderr, "{}", line);
  if (report.num_validation_documents > 0) {
    fmt::print(stderr, "held out for validation: {}, {}\n",
               counted(report.num_validation_documents, "document"),
               format_bytes(report.num_validation_bytes));
  }
  print_left_out({report.num_skipped_files, report.num_invalid_lines, report.num_invalid_utf8,
                  report.num_left_out, left_out, report.warnings, report.passed_over, report.notes,
                  report.first_empty});
}

// Of conversations; what went to a bucket is looked at when it is trained on.
void tell_missing_completions(const Place& out) {
  if (out.is_object()) return;
  const Corpus corpus(out.path());
  if (!corpus.has_loss_spans()) return;
  const std::string missing = missing_completions_text(find_completions(corpus), corpus);
  if (!missing.empty()) log::warn("{}: {}", out.text(), missing);
}

ShardOptions shard_options(const IngestArguments& options) {
  if (options.shard_index.empty()) return {*options.num_shards};
  const WorkShare share = parse_shard_index(options.shard_index);
  return {*options.num_shards, share.index, share.count};
}

ReadingOptions reading_options(IngestOptions& ingest) {
  return {ingest.text_column,
          ingest.as_text,
          ingest.format,
          ingest.document_separator,
          ingest.skip_invalid_lines,
          ingest.max_invalid_lines,
          ingest.invalid_utf8,
          ingest.max_expansion};
}

// A job array, a task of which makes a shard, or several. Tasks that fail are submitted again as
// they were.
std::string slurm_array(const IngestArguments& options, const std::vector<std::string>& words) {
  const int64_t wanted = options.num_machines.value_or(kMaxTasks);
  const int64_t num_tasks = std::min(*options.num_shards, wanted);
  return fmt::format(
      "#!/bin/bash\n#SBATCH --job-name=skein-data\n#SBATCH --array=0-{}\n#SBATCH --ntasks=1\n"
      "#SBATCH --requeue\n"
      "exec {} --shard-index \"$SLURM_ARRAY_TASK_ID/{}\" --threads {}\n",
      num_tasks - 1, shell_words(words), num_tasks, threads_of_task(options.ingest.num_threads));
}

// The command as it was given, with what a task of the array needs.
std::vector<std::string> task_words(IngestArguments& options,
                                    const std::vector<std::string>& command) {
  std::vector<std::string> words = program_words();
  words.insert(words.end(), command.begin(), command.end());
  words.insert(words.end(), {"--out", place_text(options.out.text()), "--shards",
                             std::to_string(*options.num_shards)});
  const auto add = [&](bool is_given, std::initializer_list<std::string> more) {
    if (is_given) words.insert(words.end(), more);
  };
  const std::vector<std::string> reading = reading_words(reading_options(options.ingest));
  words.insert(words.end(), reading.begin(), reading.end());
  const std::vector<std::string> chat = chat_words(options.chat);
  words.insert(words.end(), chat.begin(), chat.end());
  add(options.ingest.overwrite, {"--overwrite"});
  add(!options.work.empty(), {"--work", place_text(options.work)});
  for (const std::string& input : options.inputs) words.push_back(place_text(input));
  return words;
}

}  // namespace

void run_ingest(IngestArguments& options, const std::vector<std::string>& command,
                const OnIngestReport& on_report) {
  options.ingest.validation_out = options.validation_out;
  options.ingest.work = options.work;
  options.ingest.on_sent = show_sending;
  options.ingest.chat = chat_renderer(options.chat);
  if (options.num_machines && !options.slurm) {
    fail(ErrorCode::kUsage,
         "--machines {}: is of --slurm, which prints an array of so many tasks; elsewhere "
         "--shard-index i/{} makes the part of machine i",
         *options.num_machines, *options.num_machines);
  }
  const StopLine stop_line(kGoesOn);
  if (!options.slurm) tell_work_folder({options.out, options.validation_out}, options.work);
  const std::vector<fs::path> inputs(options.inputs.begin(), options.inputs.end());
  ReadingLine line;
  const auto show = [&](const PiecesProgress& progress) { line.show(state_of(progress)); };
  const auto tell = [&](const IngestReport& report, const Place& out) {
    print_ingest_report(report, out, options.ingest.step.left_out);
    if (options.ingest.chat) tell_missing_completions(out);
    if (on_report) on_report(out.path(), report);
  };
  if (!options.num_shards) {
    if (options.slurm || !options.shard_index.empty()) {
      fail(ErrorCode::kUsage, "--slurm and --shard-index are of shards: expected --shards N");
    }
    tell(ingest(inputs, options.out, options.ingest, show), options.out);
  } else if (options.slurm) {
    fmt::print("{}", slurm_array(options, task_words(options, command)));
  } else {
    ingest_shards(
        inputs, options.out, options.ingest, shard_options(options),
        [&](const fs::path& shard, const IngestReport& report) {
          tell(report, shard);
          line = {};
        },
        show);
  }
}

void add_ingest_arguments(CLI::App& command, IngestArguments& options) {
  IngestOptions& ingest = options.ingest;
  as_path(command.add_option("INPUT", options.inputs, "files or folders"))->required();
  as_path(command.add_option("--out", options.out, "the corpus to write, or s3://…"))->required();
  as_path(command.add_option("--validation-out", options.validation_out,
                             "hold some documents out into this corpus"));
  command
      .add_option("--validation-fraction", ingest.validation_fraction,
                  "of the documents that are held out, 0.01")
      ->check(number_between(0, 1));
  add_reading_options(command, reading_options(ingest));
  command.add_flag("--overwrite", ingest.overwrite, "replace outputs that exist");
  add_work_option(command, options.work);
  command.add_option("--threads", ingest.num_threads, "files read at a time, a core each")
      ->check(whole_number_from(1));
  command.add_option("--shards", options.num_shards, "make so many corpora, in the folder --out")
      ->check(whole_number_from(1));
  command.add_option("--shard-index", options.shard_index,
                     "i/n: make the shards of machine i, from 0, of n");
  command.add_flag("--slurm", options.slurm, "print a job array that makes the shards");
  command
      .add_option("--machines", options.num_machines,
                  "of --slurm: tasks of the array, as many as shards, at most 1000")
      ->check(whole_number_from(1));
}

}  // namespace skein
