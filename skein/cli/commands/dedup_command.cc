// skein data dedup --out FILE.arrow INPUT...
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/machine/program_path.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/inputs/left_out.h"
#include "skein/cli/inputs/reading_line.h"
#include "skein/cli/inputs/reading_options.h"
#include "skein/cli/inputs/sent_outputs.h"
#include "skein/cli/inputs/shard_option.h"
#include "skein/cli/inputs/stop_line.h"
#include "skein/cli/shared/print.h"
#include "skein/launch/jobs/dedup_array.h"
#include "skein/prepare/dedup/dedup.h"

namespace skein {
namespace {

struct DedupCommand {
  std::vector<std::string> inputs, against;
  Place out;
  std::string work;
  std::string exact = "text", near = "on", passages = "off", memory = "1GiB";
  std::string shard_index;  // "i/n"
  std::optional<int64_t> num_machines;
  DedupOptions dedup;
  bool slurm = false, json = false;
};

// A line for each pass, with a rate and a time of its own.
OnDedupProgress progress_shower() {
  return [line = ReadingLine(), pass = std::string()](const DedupProgress& progress) mutable {
    if (pass != progress.pass) line = {}, pass = progress.pass;
    line.show({fmt::format("{}  {} documents  {}", progress.pass,
                           format_count(static_cast<double>(progress.num_documents)),
                           format_bytes(progress.num_bytes)),
               progress.num_bytes, progress.done, progress.of});
  };
}

void set_options(DedupCommand& options) {
  DedupOptions& dedup_options = options.dedup;
  dedup_options.equality = options.exact == "off"     ? Equality::kNone
                           : options.exact == "words" ? Equality::kWords
                                                      : Equality::kText;
  dedup_options.removes_near = options.near == "on";
  dedup_options.passage = options.passages == "lines"        ? Passage::kLine
                          : options.passages == "paragraphs" ? Passage::kParagraph
                                                             : Passage::kNone;
  dedup_options.memory_bytes = parse_bytes("--memory", options.memory);
  dedup_options.work = options.work;
  dedup_options.on_sent = show_sending;
  dedup_options.against.assign(options.against.begin(), options.against.end());
}

ReadingOptions reading_options(DedupOptions& dedup) {
  return {dedup.read.text_column,   dedup.read.as_text,
          dedup.read.format,        dedup.read.document_separator,
          dedup.skip_invalid_lines, dedup.max_invalid_lines,
          dedup.read.utf8.invalid,  dedup.read.bytes.max_expansion};
}

// The command as it was given, but for what divides the work.
std::vector<std::string> command_words(DedupCommand& options) {
  const DedupOptions& dedup = options.dedup;
  const MinHashOptions& minhash = dedup.minhash;
  std::vector<std::string> words = program_words();
  words.insert(words.end(), {"data", "dedup"});
  const auto add = [&](const char* name, const auto& value) {
    words.insert(words.end(), {name, fmt::format("{}", value)});
  };
  const auto add_flag = [&](bool is_given, const char* name) {
    if (is_given) words.emplace_back(name);
  };
  add("--out", place_text(options.out.text()));
  if (dedup.num_shards) add("--shards", *dedup.num_shards);
  add("--exact", options.exact);
  add("--near", options.near);
  add("--ngram", minhash.num_words);
  add("--bands", minhash.num_bands);
  add("--rows", minhash.num_rows);
  add("--seed", minhash.seed);
  add("--passages", options.passages);
  if (dedup.passage != Passage::kNone) {
    add("--passage-documents", dedup.max_documents_of_passage);
  }
  if (!options.work.empty()) add("--work", place_text(options.work));
  for (const std::string& set : options.against) add("--against", place_text(set));
  if (!dedup.against_column.empty()) add("--against-column", dedup.against_column);
  if (!options.against.empty()) add("--against-words", dedup.contamination_words);
  add("--memory", options.memory);
  const std::vector<std::string> reading = reading_words(reading_options(options.dedup));
  words.insert(words.end(), reading.begin(), reading.end());
  add_flag(dedup.overwrite, "--overwrite");
  add_flag(options.json, "--json");
  for (const std::string& input : options.inputs) words.push_back(place_text(input));
  return words;
}

void print_reading(const PieceReport& read, const std::vector<std::string>& passed_over,
                   std::vector<std::string> notes, const std::vector<std::string>& restart) {
  for (const std::string& line : found_lines(read)) notes.push_back(line);
  if (log::on_terminal()) fmt::print(stderr, "\r\033[K");
  for (const std::string& line : restart) print_line(stderr, "{}", line);
  print_left_out({read.num_skipped_files, read.num_invalid_lines, read.num_invalid_utf8,
                  read.num_documents_read - read.num_documents, "empty", read.warnings, passed_over,
                  notes});
}

int run_share(const DedupCommand& options, const std::vector<fs::path>& inputs) {
  const WorkShare share = parse_shard_index(options.shard_index);
  const SigningReport report =
      sign_share(inputs, options.out, options.dedup, share, progress_shower());
  if (report.was_finished) return tell_made_before(options.out, false), kExitDone;
  const PieceReport& read = report.inputs;
  print_reading(read, report.passed_over, report.notes, report.restart);
  if (options.json) {
    print_json({{"pieces", report.num_pieces},
                {"pieces_signed_before", report.num_signed_before},
                {"files", read.num_files},
                {"documents", read.num_documents},
                {"bytes", read.num_bytes}});
  } else {
    fmt::print("signed share {}: {}, {} of text, from {}\n", options.shard_index,
               counted(read.num_documents, "document"), format_bytes(read.num_bytes),
               counted(read.num_files, "file"));
  }
  return kExitDone;
}

int run(DedupCommand& options) {
  set_options(options);
  if (options.slurm != options.num_machines.has_value()) {
    fail(ErrorCode::kUsage, "--slurm and --machines N go together: a job array of N tasks");
  }
  if (options.slurm && !options.shard_index.empty()) {
    fail(ErrorCode::kUsage, "--shard-index {} with --slurm: each task of the array has its own",
         options.shard_index);
  }
  const bool is_divided = options.slurm || !options.shard_index.empty();
  if (is_divided && options.work.empty() && options.out.is_object()) {
    fail(ErrorCode::kUsage,
         "--out {}: expected --work FOLDER as well, a folder that all machines see: they keep "
         "there what they have read and signed",
         options.out.text());
  }
  if (options.slurm) {
    fmt::print("{}", dedup_array(command_words(options), *options.num_machines,
                                 threads_of_task(options.dedup.num_threads)));
    return kExitDone;
  }
  const StopLine stop_line(kGoesOn);
  tell_work_folder({options.out}, options.work);
  const std::vector<fs::path> inputs(options.inputs.begin(), options.inputs.end());
  if (!options.shard_index.empty()) return run_share(options, inputs);
  const DedupReport report = dedup(inputs, options.out, options.dedup, progress_shower());
  if (report.was_finished || report.was_made) {
    return tell_made_before(options.out, report.was_made), kExitDone;
  }
  print_reading(report.inputs, report.passed_over, report.notes, report.restart);
  if (options.json) {
    print_json(to_json(report));
  } else {
    print_text(stdout, to_text(report));
  }
  return kExitDone;
}

void add_minhash_options(CLI::App& command, MinHashOptions& minhash) {
  command.add_option("--ngram", minhash.num_words, "words of an n-gram of near duplicates, 5")
      ->check(whole_number_from(1, 1000));
  command.add_option("--bands", minhash.num_bands, "bands of a signature, 14")
      ->check(whole_number_from(1, 4096));
  command.add_option("--rows", minhash.num_rows, "hashes of a band, 8")
      ->check(whole_number_from(1, 4096));
  command.add_option("--seed", minhash.seed, "of the hashes, 1")->check(whole_number_from(0));
}

void add_machine_options(CLI::App& command, DedupCommand& options) {
  command
      .add_option("--shards", options.dedup.num_shards,
                  "write so many corpora, in the folder --out")
      ->check(whole_number_from(1));
  command.add_option("--shard-index", options.shard_index,
                     "i/n: read and sign the share of machine i, from 0, of n; the same command "
                     "without it, later, does the rest");
  command.add_flag("--slurm", options.slurm, "print a script that submits all of it to Slurm");
  command.add_option("--machines", options.num_machines, "of --slurm: so many sign")
      ->check(whole_number_from(1));
}

}  // namespace

void add_dedup_command(CLI::App& group, CommandContext& context) {
  const auto options = std::make_shared<DedupCommand>();
  DedupOptions& dedup_options = options->dedup;
  CLI::App* command = group.add_subcommand(
      "dedup", "Remove duplicates, near duplicates and evaluation text from documents");
  as_path(command->add_option("INPUT", options->inputs, "files or folders"))->required();
  as_path(command->add_option("--out", options->out, "the corpus to write, or s3://…"))->required();
  add_machine_options(*command, *options);
  command->add_option("--exact", options->exact, "equal documents: by text, by words, off; text")
      ->check(CLI::IsMember({"text", "words", "off"}).description(""));
  command->add_option("--near", options->near, "near duplicates: on, off; on")
      ->check(CLI::IsMember({"on", "off"}).description(""));
  add_minhash_options(*command, dedup_options.minhash);
  command
      ->add_option("--passages", options->passages,
                   "cut repeated lines, paragraphs, or nothing: off; off")
      ->check(CLI::IsMember({"lines", "paragraphs", "off"}).description(""));
  command
      ->add_option("--passage-documents", dedup_options.max_documents_of_passage,
                   "cut passages of more documents than that, 1")
      ->needs("--passages")
      ->check(whole_number_from(1));
  as_path(command->add_option("--against", options->against,
                              "an evaluation set, a file or folder: drop documents that share 13 "
                              "words in a row with it; repeatable"))
      ->allow_extra_args(false);
  command
      ->add_option("--against-column", dedup_options.against_column,
                   "the key or column of the sets' examples, that of --text-column")
      ->needs("--against");
  command->add_option("--against-words", dedup_options.contamination_words, "so many words, 13")
      ->needs("--against")
      ->check(whole_number_from(1, 1000));
  command->add_option("--memory", options->memory, "the most to use, 1GiB");
  command->add_option("--threads", dedup_options.num_threads, "all cores")
      ->check(whole_number_from(1, 4096));
  add_reading_options(*command, reading_options(dedup_options));
  command->add_flag("--overwrite", dedup_options.overwrite, "replace an output that exists");
  add_work_option(*command, options->work);
  command->add_flag("--json", options->json, "print one JSON document");
  command->callback([&context, options] { context.run = [options] { return run(*options); }; });
}

}  // namespace skein
