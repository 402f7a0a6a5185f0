// skein data tokenizer --vocab-size N --out DIR FILE.arrow
// skein data sample RUN|CONFIG.toml --step N [--json]
// skein data stats FILE.arrow [--tokenizer DIR] [--json]
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/shared/print.h"
#include "skein/data/learn/stats.h"
#include "skein/train/explain/step_rows.h"

namespace skein {
namespace {

struct TokenizerCommand {
  std::string corpus;
  std::string model;
  std::string out;
  int vocab_size = 0;
  std::string kind = "sentencepiece", pattern, sample;
  std::vector<std::string> special;
  std::optional<int64_t> min_count;
  TrainTokenizerOptions train;
};

void show_training(const char* pass, int64_t done, int64_t of) {
  if (!log::on_terminal()) return;
  const bool is_text = done == 0;
  fmt::print(stderr, "\r\033[K{} {}", pass,
             is_text ? format_bytes(of) : fmt::format("{} of {} tokens", done, of));
}

TrainTokenizerOptions training_options(const TokenizerCommand& options) {
  using Pattern = bpe::SplitPattern::Kind;
  TrainTokenizerOptions train = options.train;
  train.on_progress = show_training;
  if (!options.sample.empty()) train.sample_bytes = parse_bytes("--sample", options.sample);
  if (options.kind == "sentencepiece") {
    if (!options.pattern.empty() || !options.special.empty() || options.min_count) {
      fail(ErrorCode::kUsage,
           "--pattern, --special and --min-count are of byte-level BPE: expected --kind "
           "byte-level");
    }
    return train;
  }
  train.kind = TokenizerKind::kByteLevel;
  train.pattern = options.pattern == "gpt2"    ? Pattern::kGpt2
                  : options.pattern == "qwen2" ? Pattern::kQwen2
                                               : Pattern::kLlama3;
  if (!options.special.empty()) train.special = options.special;
  if (options.min_count) train.min_count = *options.min_count;
  return train;
}

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
    train_tokenizer(Corpus(options.corpus), options.vocab_size, options.out,
                    training_options(options));
    if (log::on_terminal()) fmt::print(stderr, "\r\033[K");
  }
  print_line(stderr, "{}: {} tokens", options.out, Tokenizer::load(options.out)->vocab_size());
  return kExitDone;
}

void add_tokenizer(CLI::App& group, CommandContext& context) {
  const auto options = std::make_shared<TokenizerCommand>();
  CLI::App* command =
      group.add_subcommand("tokenizer", "Train a tokenizer: SentencePiece or byte-level BPE");
  as_path(command->add_option("FILE.arrow", options->corpus, "the corpus to learn from"));
  command->add_option("--vocab-size", options->vocab_size, "number of tokens")
      ->check(whole_number_from(1));
  as_path(command->add_option("--out", options->out, "the folder to write"))->required();
  command
      ->add_option("--kind", options->kind,
                   "sentencepiece (Llama 2) or byte-level (Llama 3, GPT-2)")
      ->check(CLI::IsMember({"sentencepiece", "byte-level"}).description(""));
  command
      ->add_option("--pattern", options->pattern,
                   "how byte-level BPE splits words: gpt2, llama3 or qwen2; llama3")
      ->check(CLI::IsMember({"gpt2", "llama3", "qwen2"}).description(""));
  command
      ->add_option("--special", options->special,
                   "a token that no text spells, <|endoftext|>; the first one ends documents; "
                   "repeatable")
      ->allow_extra_args(false);
  command->add_option("--min-count", options->min_count, "of a pair that becomes a token, 2")
      ->check(whole_number_from(1));
  command->add_option("--sample", options->sample,
                      "the most text to learn from, 12MiB; of byte-level BPE 1GiB");
  command->add_option("--threads", options->train.num_threads, "all cores")
      ->check(whole_number_from(1, 4096));
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

// A row often begins in the middle of a document.
int64_t documents_that_begin(std::span<const RowSegment> segments, int64_t row) {
  int64_t count = 0;
  const RowSegment* before = nullptr;
  for (const RowSegment& segment : segments) {
    if (segment.row != row) continue;
    const bool goes_on = before != nullptr && before->corpus == segment.corpus &&
                         before->document == segment.document;
    if (segment.first_token == 0 && !goes_on) ++count;
    before = &segment;
  }
  return count;
}

void print_batch(const Batch& batch, std::span<const RowSegment> segments,
                 const Tokenizer& tokenizer) {
  for (int64_t row = 0; row < batch.sequences; ++row) {
    const int64_t count = documents_that_begin(segments, row);
    fmt::print("--- lane {} ({} {} here)\n{}\n", batch.lane(row),
               count == 0 ? "no" : fmt::format("{}", count),
               count == 1 ? "document begins" : "documents begin",
               terminal_text(tokenizer.decode(batch.row(batch.tokens, row))));
  }
}

int sample(const SampleCommand& options) {
  StepRows rows(load_config_of_run(options.config));
  for (int64_t step = options.step; step < options.step + options.count; ++step) {
    rows.read(step);
    if (options.json) {
      fmt::print("{}\n", json_text(batch_to_json(rows.batch(), rows.segments(), rows.sources())));
    } else {
      print_batch(rows.batch(), rows.segments(), rows.tokenizer());
    }
    flush_output();
  }
  return kExitDone;
}

void add_sample(CLI::App& group, CommandContext& context) {
  const auto options = std::make_shared<SampleCommand>();
  CLI::App* command = group.add_subcommand(
      "sample", "Print the exact tokens of a step, as the run trained it or will");
  options->config.add_to(*command, context);
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
      if (!options->tokenizer.empty()) {
        tokenizer = Tokenizer::load(options->tokenizer);
        warn_of(*tokenizer);
      }
      const CorpusStats stats = corpus_stats(Corpus(options->corpus), tokenizer.get());
      if (options->json) {
        print_json(to_json(stats));
      } else {
        print_text(stdout, to_text(stats));
      }
      return kExitDone;
    };
  });
}

}  // namespace

void add_data_commands(CLI::App& app, CommandContext& context) {
  CLI::App& group = command_group(app, "data", "Corpora, tokenizers, and what a step will see");
  add_ingest_command(group, context);
  add_clean_command(group, context);
  add_show_command(group, context);
  add_dedup_command(group, context);
  add_tokenizer(group, context);
  add_sample(group, context);
  add_stats(group, context);
}

}  // namespace skein
