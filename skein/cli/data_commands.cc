// skein data ingest --out FILE.arrow INPUT...
// skein data dedup --out FILE.arrow INPUT...  (dedup_command.cc)
// skein data tokenizer --vocab-size N --out DIR FILE.arrow
// skein data sample CONFIG.toml --step N [--json]
// skein data stats FILE.arrow [--tokenizer DIR] [--json]
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "skein/base/error.h"
#include "skein/base/log.h"
#include "skein/base/units.h"
#include "skein/cli/commands.h"
#include "skein/config/data_feed.h"
#include "skein/config/run_skips.h"
#include "skein/data/packer.h"
#include "skein/data/stats.h"
#include "skein/prepare/ingest.h"

namespace skein {
namespace {

void show_ingest_progress(const PiecesProgress& progress) {
  if (!log::on_terminal()) return;
  fmt::print(stderr, "\r\033[K{}/{} files  {} documents  {}", progress.num_files_done,
             progress.num_files, format_count(static_cast<double>(progress.num_documents)),
             format_bytes(progress.num_bytes));
}

std::string counted(int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void print_ingest_report(const IngestReport& report, const std::string& out) {
  if (log::on_terminal()) fmt::print(stderr, "\r\033[K");
  fmt::print(stderr, "{}: {}, {} of text, from {}\n", out,
             counted(report.num_documents, "document"), format_bytes(report.num_bytes),
             counted(report.num_files, "file"));
  for (const std::string& line : report.restart) fmt::print(stderr, "{}\n", line);
  if (report.num_validation_documents > 0) {
    fmt::print(stderr, "held out for validation: {}, {}\n",
               counted(report.num_validation_documents, "document"),
               format_bytes(report.num_validation_bytes));
  }
  if (report.num_skipped_files > 0) {
    fmt::print(stderr, "passed over {} that hold{} no text\n",
               counted(report.num_skipped_files, "file"), report.num_skipped_files == 1 ? "s" : "");
  }
  for (const std::string& warning : report.warnings) fmt::print(stderr, "  {}\n", warning);
  if (report.num_invalid_lines > 0) {
    fmt::print(stderr, "passed over {} not valid\n", counted(report.num_invalid_lines, "line"));
  }
  if (report.num_empty_documents > 0) {
    fmt::print(stderr, "left out {}\n", counted(report.num_empty_documents, "empty document"));
  }
  if (!report.passed_over.empty()) fmt::print(stderr, "not read\n");
  constexpr size_t kShown = 20;
  for (size_t i = 0; i < std::min(kShown, report.passed_over.size()); ++i) {
    fmt::print(stderr, "  {}\n", report.passed_over[i]);
  }
  if (report.passed_over.size() > kShown) {
    fmt::print(stderr, "  … and {} more\n", report.passed_over.size() - kShown);
  }
  for (const std::string& note : report.notes) log::warn("{}", note);
}

void add_ingest(CLI::App& group, CommandContext& context) {
  struct Options {
    std::vector<std::string> inputs;
    std::string out;
    std::string validation_out;
    IngestOptions ingest;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = group.add_subcommand(
      "ingest", "Turn text, JSON, CSV, Parquet and Arrow into one corpus file");
  as_path(command->add_option("INPUT", options->inputs, "files or folders"))->required();
  as_path(command->add_option("--out", options->out, "the corpus to write"))->required();
  as_path(command->add_option("--validation-out", options->validation_out,
                              "hold some documents out into this corpus"));
  command
      ->add_option("--validation-fraction", options->ingest.validation_fraction,
                   "of the documents that are held out, 0.01")
      ->check(number_between(0, 1));
  command->add_option("--text-column", options->ingest.text_column,
                      "the key or column that holds the documents, text");
  command->add_flag("--as-text", options->ingest.as_text,
                    "take .json, .csv and the like as they stand, a document a file");
  command->add_flag("--skip-invalid-lines", options->ingest.skip_invalid_lines,
                    "pass over JSON lines that are not valid instead of stopping");
  command->add_flag("--overwrite", options->ingest.overwrite, "replace outputs that exist");
  command->add_option("--threads", options->ingest.num_threads, "files read at a time, a core each")
      ->check(whole_number_from(1));
  command->callback([&context, options] {
    context.run = [options] {
      options->ingest.validation_out = options->validation_out;
      const std::vector<fs::path> inputs(options->inputs.begin(), options->inputs.end());
      const IngestReport report =
          ingest(inputs, options->out, options->ingest, show_ingest_progress);
      print_ingest_report(report, options->out);
      return kExitDone;
    };
  });
}

struct TokenizerCommand {
  std::string corpus;
  std::string model;
  std::string out;
  int vocab_size = 0;
  TrainTokenizerOptions train;
};

int make_tokenizer(const TokenizerCommand& options) {
  if (!options.model.empty()) {
    if (!options.corpus.empty() || options.vocab_size != 0) {
      fail(ErrorCode::kUsage,
           "--from-model takes the tokenizer as it is: expected neither a corpus nor --vocab-size");
    }
    convert_tokenizer(options.model, options.out, options.train.overwrite);
  } else {
    if (options.corpus.empty() || options.vocab_size == 0) {
      fail(ErrorCode::kUsage,
           "a tokenizer is trained on a corpus: expected FILE.arrow and --vocab-size N (or "
           "--from-model tokenizer.model)");
    }
    train_tokenizer(Corpus(options.corpus), options.vocab_size, options.out, options.train);
  }
  fmt::print(stderr, "{}: {} tokens\n", options.out, Tokenizer::load(options.out)->vocab_size());
  return kExitDone;
}

void add_tokenizer(CLI::App& group, CommandContext& context) {
  const auto options = std::make_shared<TokenizerCommand>();
  CLI::App* command = group.add_subcommand("tokenizer", "Train a SentencePiece BPE tokenizer");
  as_path(command->add_option("FILE.arrow", options->corpus, "the corpus to learn from"));
  command->add_option("--vocab-size", options->vocab_size, "number of tokens")
      ->check(whole_number_from(1));
  as_path(command->add_option("--out", options->out, "the folder to write"))->required();
  command->add_option("--seed", options->train.seed, "which documents are sampled, 1")
      ->check(whole_number_from(0));
  as_path(command->add_option(
      "--from-model", options->model,
      "train nothing: write the files of transformers for this tokenizer.model"));
  command->add_flag("--overwrite", options->train.overwrite,
                    "replace a tokenizer that --out holds");
  command->callback(
      [&context, options] { context.run = [options] { return make_tokenizer(*options); }; });
}

struct SampleCommand {
  ConfigOptions config;
  int64_t step = 1;
  int64_t count = 1;
  bool json = false;
};

void print_batch(const Batch& batch, const Tokenizer& tokenizer) {
  for (int64_t row = 0; row < batch.sequences; ++row) {
    fmt::print("--- lane {} ({} documents begin here)\n{}\n", batch.first_lane + row,
               batch.document_starts(row).size(), tokenizer.decode(batch.row(batch.tokens, row)));
  }
}

int sample(const SampleCommand& options) {
  const Config config = load_config(options.config.path, options.config.overrides);
  const auto tokenizer = load_tokenizer(config.data.tokenizer, "data.tokenizer");
  const DataFeed feed(config.data.train, *tokenizer, config, tokenizer->vocab_size());
  const SkippedBatches skipped = skipped_by_run(config);
  Packer packer(feed.context(), 0, config.batch.global_sequences);
  Batch batch(0, config.batch.global_sequences, config.data.sequence_length);
  std::vector<RowSegment> segments;
  for (int64_t at = 0, step = options.step; step < options.step + options.count; ++step) {
    const int64_t number = skipped.batch_of(step);
    packer.skip(number - at - 1);
    packer.fill(batch, &segments);
    at = number;
    batch.step = step;
    if (options.json) {
      fmt::print("{}\n", batch_to_json(batch, segments).dump());
    } else {
      print_batch(batch, *tokenizer);
    }
    flush_output();
  }
  return kExitDone;
}

void add_sample(CLI::App& group, CommandContext& context) {
  const auto options = std::make_shared<SampleCommand>();
  CLI::App* command =
      group.add_subcommand("sample", "Print the exact tokens of one step's global batch");
  options->config.add_to(*command);
  command->add_option("--step", options->step, "the first step is 1")
      ->required()
      ->check(whole_number_from(1));
  command->add_option("--count", options->count, "steps from there on, 1; JSON has one a line")
      ->check(whole_number_from(1));
  command->add_flag("--json", options->json, "print one JSON document");
  command->callback([&context, options] { context.run = [options] { return sample(*options); }; });
}

void add_stats(CLI::App& group, CommandContext& context) {
  struct Options {
    std::string corpus;
    std::string tokenizer;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = group.add_subcommand("stats", "Tell what is in a corpus");
  as_path(command->add_option("FILE.arrow", options->corpus, "the corpus"))->required();
  as_path(command->add_option("--tokenizer", options->tokenizer, "count tokens, too"));
  command->add_flag("--json", options->json, "print one JSON document");
  command->callback([&context, options] {
    context.run = [options] {
      std::unique_ptr<Tokenizer> tokenizer;
      if (!options->tokenizer.empty()) tokenizer = Tokenizer::load(options->tokenizer);
      const CorpusStats stats = corpus_stats(Corpus(options->corpus), tokenizer.get());
      if (options->json) {
        print_json(to_json(stats));
      } else {
        fmt::print("{}", to_text(stats));
      }
      return kExitDone;
    };
  });
}

}  // namespace

void add_data_commands(CLI::App& app, CommandContext& context) {
  CLI::App& group = command_group(app, "data", "Corpora, tokenizers, and what a step will see");
  add_ingest(group, context);
  add_dedup(group, context);
  add_tokenizer(group, context);
  add_sample(group, context);
  add_stats(group, context);
}

}  // namespace skein
