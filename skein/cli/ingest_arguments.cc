#include "skein/cli/ingest_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "skein/base/error.h"
#include "skein/base/log.h"
#include "skein/base/units.h"
#include "skein/cli/commands.h"
#include "skein/cli/left_out.h"
#include "skein/cli/sent_outputs.h"
#include "skein/cli/shard_index.h"
#include "skein/launch/shell_words.h"
#include "skein/prepare/ingest_shards.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLineEvery = std::chrono::seconds(30);  // where there is no terminal

// One line on a terminal, drawn again and again; elsewhere a line now and then.
class ProgressLine {
 public:
  void show(const PiecesProgress& progress) {
    const Clock::time_point now = Clock::now();
    if (!is_begun_) begin_ = last_ = now, first_ = progress, is_begun_ = true;
    if (log::on_terminal()) {
      fmt::print(stderr, "\r\033[K{}", text(progress, now));
    } else if (now - last_ >= kLineEvery) {
      fmt::print(stderr, "{}\n", text(progress, now));
      last_ = now;
    }
  }

 private:
  // Rates are of this process: what was taken from before is in none.
  std::string text(const PiecesProgress& progress, Clock::time_point now) const {
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    std::string line =
        fmt::format("{}/{} files  {} documents  {}", progress.num_files_done, progress.num_files,
                    format_count(static_cast<double>(progress.num_documents)),
                    format_bytes(progress.num_bytes));
    const int64_t done = progress.num_input_bytes_done - first_.num_input_bytes_done;
    if (seconds < 1 || done <= 0) return line;
    const double rate = static_cast<double>(progress.num_bytes - first_.num_bytes) / seconds;
    const double left =
        static_cast<double>(progress.num_input_bytes - progress.num_input_bytes_done) * seconds /
        static_cast<double>(done);
    return fmt::format("{}  {:.1f} MB/s  {} left", line, rate / 1e6, format_duration(left));
  }

  bool is_begun_ = false;
  Clock::time_point begin_, last_;
  PiecesProgress first_;
};

void print_ingest_report(const IngestReport& report, const std::string& out, const char* left_out) {
  if (log::on_terminal()) fmt::print(stderr, "\r\033[K");
  if (report.was_finished || report.was_made) return tell_made_before(out, report.was_made);
  fmt::print(stderr, "{}: {}, {} of text, from {}\n", out,
             counted(report.num_documents, "document"), format_bytes(report.num_bytes),
             counted(report.num_files, "file"));
  for (const std::string& line : report.restart) fmt::print(stderr, "{}\n", line);
  if (report.num_validation_documents > 0) {
    fmt::print(stderr, "held out for validation: {}, {}\n",
               counted(report.num_validation_documents, "document"),
               format_bytes(report.num_validation_bytes));
  }
  print_left_out({report.num_skipped_files, report.num_invalid_lines, report.num_invalid_utf8,
                  report.num_left_out, left_out, report.warnings, report.passed_over,
                  report.notes});
}

ShardOptions shard_options(const IngestArguments& options) {
  if (options.shard_index.empty()) return {*options.num_shards};
  const WorkShare share = parse_shard_index(options.shard_index);
  return {*options.num_shards, share.index, share.count};
}

// A job array with a task a shard. Tasks that fail are submitted again as they were.
std::string slurm_array(const IngestArguments& options, const std::vector<std::string>& words) {
  return fmt::format(
      "#!/bin/bash\n#SBATCH --job-name=skein-data\n#SBATCH --array=0-{}\n#SBATCH --ntasks=1\n"
      "#SBATCH --requeue\n"
      "exec {} --shard-index \"$SLURM_ARRAY_TASK_ID/{}\" --threads "
      "\"${{SLURM_CPUS_ON_NODE:-1}}\"\n",
      *options.num_shards - 1, shell_words(words), *options.num_shards);
}

// The command as it was given, with what a task of the array needs.
std::vector<std::string> task_words(const IngestArguments& options,
                                    const std::vector<std::string>& command) {
  const IngestOptions& ingest = options.ingest;
  std::vector<std::string> words = {fs::read_symlink("/proc/self/exe").string()};
  words.insert(words.end(), command.begin(), command.end());
  words.insert(words.end(),
               {"--out", options.out, "--shards", std::to_string(*options.num_shards)});
  const auto add = [&](bool is_given, std::initializer_list<std::string> more) {
    if (is_given) words.insert(words.end(), more);
  };
  const IngestOptions defaults;
  add(ingest.text_column != defaults.text_column, {"--text-column", ingest.text_column});
  add(ingest.as_text, {"--as-text"});
  add(!options.format.empty(), {"--format", options.format});
  add(ingest.skip_invalid_lines,
      {"--skip-invalid-lines", "--max-invalid-lines", fmt::format("{}", ingest.max_invalid_lines)});
  add(!options.invalid_utf8.empty(), {"--invalid-utf8", options.invalid_utf8});
  add(ingest.max_expansion != defaults.max_expansion,
      {"--max-expansion", std::to_string(ingest.max_expansion)});
  add(ingest.overwrite, {"--overwrite"});
  add(!options.work.empty(), {"--work", options.work});
  words.insert(words.end(), options.inputs.begin(), options.inputs.end());
  return words;
}

}  // namespace

void run_ingest(IngestArguments& options, const std::vector<std::string>& command,
                const std::function<void(const IngestReport&)>& on_report) {
  const std::map<std::string, InvalidUtf8> policies = {{"", InvalidUtf8::kFail},
                                                       {"fail", InvalidUtf8::kFailAlways},
                                                       {"replace", InvalidUtf8::kReplace},
                                                       {"skip", InvalidUtf8::kSkip}};
  options.ingest.invalid_utf8 = policies.at(options.invalid_utf8);
  if (!options.format.empty()) options.ingest.format = format_named(options.format);
  options.ingest.validation_out = options.validation_out;
  options.ingest.work = options.work;
  options.ingest.on_sent = show_sending;
  if (!options.slurm) tell_work_folder({options.out, options.validation_out}, options.work);
  const std::vector<fs::path> inputs(options.inputs.begin(), options.inputs.end());
  ProgressLine line;
  const auto show = [&](const PiecesProgress& progress) { line.show(progress); };
  const auto tell = [&](const IngestReport& report, const std::string& out) {
    print_ingest_report(report, out, options.ingest.step.left_out);
    if (on_report) on_report(report);
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
          tell(report, shard.string());
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
  command.add_option("--text-column", ingest.text_column,
                     "the key or column that holds the documents, text");
  command.add_flag("--as-text", ingest.as_text,
                   "take .json, .csv and the like as they stand, a document a file");
  add_format_option(command, options.format);
  command.add_flag("--skip-invalid-lines", ingest.skip_invalid_lines,
                   "pass over JSON lines that are not valid instead of stopping");
  command
      .add_option("--max-invalid-lines", ingest.max_invalid_lines,
                  "the share of lines that may be passed over, beyond 100, 0.01; 0: none")
      ->check(number_between(0, 1));
  command
      .add_option("--invalid-utf8", options.invalid_utf8,
                  "what becomes of text that is not UTF-8: fail, replace or skip; if not given, "
                  "such texts in folders are passed over")
      ->check(CLI::IsMember({"fail", "replace", "skip"}).description(""));
  command
      .add_option("--max-expansion", ingest.max_expansion,
                  "how many times its size a file may give that is more than a GiB, 1000; 0: any")
      ->check(whole_number_from(0));
  command.add_flag("--overwrite", ingest.overwrite, "replace outputs that exist");
  add_work_option(command, options.work);
  command.add_option("--threads", ingest.num_threads, "files read at a time, a core each")
      ->check(whole_number_from(1));
  command.add_option("--shards", options.num_shards, "make so many corpora, in the folder --out")
      ->check(whole_number_from(1));
  command.add_option("--shard-index", options.shard_index,
                     "i/n: make the shards of machine i, from 0, of n");
  command.add_flag("--slurm", options.slurm, "print a job array that makes the shards");
}

}  // namespace skein
