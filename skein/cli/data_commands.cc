// skein data ingest --out FILE.arrow INPUT…
// skein data tokenizer --vocab-size N --out DIR FILE.arrow
// skein data sample CONFIG.toml --step N [--json]
// skein data stats FILE.arrow [--tokenizer DIR] [--json]
#include <fmt/format.h>

#include <memory>

#include "skein/base/log.h"
#include "skein/base/units.h"
#include "skein/cli/commands.h"
#include "skein/data/ingest.h"
#include "skein/data/packer.h"
#include "skein/data/stats.h"
#include "skein/train/data_feed.h"

namespace skein {
namespace {

void show_ingest_progress(const IngestProgress& progress) {
  if (!log::on_terminal()) return;
  fmt::print(stderr, "\r\033[K{}/{} files  {} documents  {}", progress.num_files_done,
             progress.num_files, format_count(static_cast<double>(progress.num_documents)),
             format_bytes(progress.num_bytes));
}

void print_ingest_report(const IngestReport& report, const std::string& out) {
  if (log::on_terminal()) fmt::print(stderr, "\r\033[K");
  fmt::print(stderr, "{}: {} documents, {} of text, from {} files\n", out, report.num_documents,
             format_bytes(report.num_bytes), report.num_files);
  if (report.num_validation_documents > 0) {
    fmt::print(stderr, "held out for validation: {} documents, {}\n",
               report.num_validation_documents, format_bytes(report.num_validation_bytes));
  }
  if (report.num_skipped_files > 0) {
    fmt::print(stderr, "passed over {} files that are not UTF-8 text\n", report.num_skipped_files);
  }
  if (report.num_invalid_lines > 0) {
    fmt::print(stderr, "passed over {} lines that are not valid\n", report.num_invalid_lines);
  }
  for (const std::string& warning : report.warnings) fmt::print(stderr, "  {}\n", warning);
}

void add_ingest(CLI::App& group, CommandContext& context) {
  struct Options {
    std::vector<std::string> inputs;
    std::string out;
    std::string validation_out;
    IngestOptions ingest;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      group.add_subcommand("ingest", "Turn text, JSONL, Parquet and Arrow into one corpus file");
  as_path(command->add_option("INPUT", options->inputs, "files or folders"))->required();
  as_path(command->add_option("--out", options->out, "the corpus to write"))->required();
  as_path(command->add_option("--validation-out", options->validation_out,
                              "hold some documents out into this corpus"));
  command
      ->add_option("--validation-fraction", options->ingest.validation_fraction,
                   "of the documents that are held out, 0.01")
      ->check(number_between(0, 1));
  command->add_flag("--skip-invalid-lines", options->ingest.skip_invalid_lines,
                    "pass over JSONL lines that are not valid instead of stopping");
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

void add_tokenizer(CLI::App& group, CommandContext& context) {
  struct Options {
    std::string corpus;
    std::string out;
    int vocab_size = 0;
    TrainTokenizerOptions train;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = group.add_subcommand("tokenizer", "Train a SentencePiece BPE tokenizer");
  as_path(command->add_option("FILE.arrow", options->corpus, "the corpus to learn from"))
      ->required();
  command->add_option("--vocab-size", options->vocab_size, "number of tokens")
      ->required()
      ->check(whole_number_from(1));
  as_path(command->add_option("--out", options->out, "the folder to write"))->required();
  command->add_option("--seed", options->train.seed, "which documents are sampled, 1")
      ->check(whole_number_from(0));
  command->callback([&context, options] {
    context.run = [options] {
      train_tokenizer(Corpus(options->corpus), options->vocab_size, options->out, options->train);
      fmt::print(stderr, "{}: {} tokens\n", options->out, options->vocab_size);
      return kExitDone;
    };
  });
}

void print_batch(const Batch& batch, const Tokenizer& tokenizer) {
  for (int64_t row = 0; row < batch.sequences; ++row) {
    fmt::print("--- lane {} ({} documents begin here)\n{}\n", batch.first_lane + row,
               batch.document_starts(row).size(), tokenizer.decode(batch.row(batch.tokens, row)));
  }
}

void add_sample(CLI::App& group, CommandContext& context) {
  struct Options {
    ConfigOptions config;
    int64_t step = 1;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      group.add_subcommand("sample", "Print the exact tokens of one step's global batch");
  options->config.add_to(*command);
  command->add_option("--step", options->step, "the first step is 1")
      ->required()
      ->check(whole_number_from(1));
  command->add_flag("--json", options->json, "print one JSON document");
  command->callback([&context, options] {
    context.run = [options] {
      const Config config = load_config(options->config.path, options->config.overrides);
      const auto tokenizer = Tokenizer::load(config.data.tokenizer);
      const DataFeed feed(config.data.train, *tokenizer, config, tokenizer->vocab_size());
      const Batch batch = batch_of_step(feed.context(), options->step);
      if (options->json) {
        fmt::print("{}\n", batch_to_json(batch).dump());
      } else {
        print_batch(batch, *tokenizer);
      }
      return kExitDone;
    };
  });
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
  add_tokenizer(group, context);
  add_sample(group, context);
  add_stats(group, context);
}

}  // namespace skein
