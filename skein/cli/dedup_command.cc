// skein data dedup --out FILE.arrow INPUT...
#include <fmt/format.h>

#include <memory>

#include "skein/base/log.h"
#include "skein/base/units.h"
#include "skein/cli/commands.h"
#include "skein/cli/left_out.h"
#include "skein/prepare/dedup/dedup.h"

namespace skein {
namespace {

struct DedupCommand {
  std::vector<std::string> inputs, against;
  std::string out;
  std::string exact = "text", near = "on", passages = "off", memory = "1GiB";
  DedupOptions dedup;
  bool json = false;
};

void show_progress(const DedupProgress& progress) {
  if (!log::on_terminal()) return;
  fmt::print(stderr, "\r\033[K{}  {} documents  {}", progress.pass,
             format_count(static_cast<double>(progress.num_documents)),
             format_bytes(progress.num_bytes));
}

int run(DedupCommand& options) {
  DedupOptions& dedup_options = options.dedup;
  dedup_options.equality = options.exact == "off"     ? Equality::kNone
                           : options.exact == "words" ? Equality::kWords
                                                      : Equality::kText;
  dedup_options.removes_near = options.near == "on";
  dedup_options.passage = options.passages == "lines"        ? Passage::kLine
                          : options.passages == "paragraphs" ? Passage::kParagraph
                                                             : Passage::kNone;
  dedup_options.memory_bytes = parse_bytes("--memory", options.memory);
  dedup_options.against.assign(options.against.begin(), options.against.end());
  const std::vector<fs::path> inputs(options.inputs.begin(), options.inputs.end());
  const DedupReport report = dedup(inputs, options.out, dedup_options, show_progress);
  if (log::on_terminal()) fmt::print(stderr, "\r\033[K");
  for (const std::string& line : report.restart) fmt::print(stderr, "{}\n", line);
  const PieceReport& read = report.inputs;
  print_left_out({read.num_skipped_files, read.num_invalid_lines, read.num_invalid_utf8,
                  read.num_documents_read - read.num_documents, "empty", read.warnings,
                  report.passed_over, report.notes});
  if (options.json) {
    print_json(to_json(report));
  } else {
    fmt::print("{}", to_text(report));
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

}  // namespace

void add_dedup_command(CLI::App& group, CommandContext& context) {
  const auto options = std::make_shared<DedupCommand>();
  DedupOptions& dedup_options = options->dedup;
  CLI::App* command = group.add_subcommand(
      "dedup", "Remove duplicates, near duplicates and evaluation text from documents");
  as_path(command->add_option("INPUT", options->inputs, "files or folders"))->required();
  as_path(command->add_option("--out", options->out, "the corpus to write"))->required();
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
      ->check(whole_number_from(1));
  as_path(command->add_option("--against", options->against,
                              "an evaluation set: drop documents that share 13 words in a row with "
                              "it; repeatable"))
      ->allow_extra_args(false);
  command->add_option("--against-words", dedup_options.contamination_words, "so many words, 13")
      ->check(whole_number_from(1, 1000));
  command->add_option("--memory", options->memory, "the most to use, 1GiB");
  command->add_option("--threads", dedup_options.num_threads, "all cores")
      ->check(whole_number_from(1, 4096));
  command->add_option("--text-column", dedup_options.read.text_column,
                      "the key or column that holds the documents, text");
  command->add_flag("--as-text", dedup_options.read.as_text,
                    "take .json, .csv and the like as they stand, a document a file");
  command->add_flag("--skip-invalid-lines", dedup_options.skip_invalid_lines,
                    "pass over JSON lines that are not valid instead of stopping");
  command->add_flag("--overwrite", dedup_options.overwrite, "replace an output that exists");
  command->add_flag("--json", options->json, "print one JSON document");
  command->callback([&context, options] { context.run = [options] { return run(*options); }; });
}

}  // namespace skein
