// skein score --model HF_DIR_OR_CHECKPOINT --tokens FILE.json
// skein score --model HF_DIR_OR_CHECKPOINT --corpus FILE.arrow [--sequence-length N] [--json]
#include <cmath>
#include <cstdio>
#include <memory>

#include "skein/base/text/json_text.h"
#include "skein/base/text/units.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/inputs/device_arguments.h"
#include "skein/infer/inference.h"
#include "skein/ops/ops.h"
#include "skein/train/explain/score_corpus.h"

namespace skein {
namespace {

std::vector<std::vector<int32_t>> read_sequences(const std::string& path) {
  const Json json = read_json(path);
  const auto expected = [&](const std::string& found) {
    fail(ErrorCode::kInvalid, "{}: expected a list of lists of token ids, found {}", path, found);
  };
  if (!json.is_array()) expected(json.type_name());
  std::vector<std::vector<int32_t>> sequences;
  for (const Json& list : json) {
    if (!list.is_array()) expected(fmt::format("{} in it", list.type_name()));
    std::vector<int32_t>& sequence = sequences.emplace_back();
    for (const Json& id : list) {
      if (!id.is_number_integer() || id < 0 || id > INT32_MAX) {
        expected(fmt::format("{} in list {}", json_text(id), sequences.size() - 1));
      }
      sequence.push_back(id.get<int32_t>());
    }
  }
  return sequences;
}

int print_logprobs(const std::string& model, const std::string& tokens,
                   const DeviceArguments& arguments) {
  const auto sequences = read_sequences(tokens);
  const ModelSource source(model);
  arguments.prepare();
  const auto device = arguments.make();
  // Floats are printed in the shortest form that reads back to the same bits.
  std::string text = "{\"logprobs\": [";
  bool first_list = true;
  for (const std::vector<float>& logprobs : score_tokens(source, *device, sequences)) {
    text += first_list ? "[" : ", [";
    first_list = false;
    for (size_t t = 0; t < logprobs.size(); ++t) {
      text += (t == 0 ? "" : ", ") + json_float(logprobs[t]);
    }
    text += "]";
  }
  std::fputs((text + "]}\n").c_str(), stdout);
  return kExitDone;
}

int print_corpus_score(const ScoreQuestion& question, bool json) {
  const CorpusScore score = score_corpus(question);
  if (json) {
    print_json({{"model", score.model},
                {"corpus", question.corpus.string()},
                {"loss", static_cast<float>(score.loss)},  // as a validation records it
                {"perplexity", score.perplexity()},
                {"bits_per_byte", score.bits_per_byte()},
                {"tokens", score.num_labels},
                {"corpus_tokens", score.num_tokens},
                {"bytes", score.num_bytes},
                {"documents", score.num_documents},
                {"batches", score.num_batches},
                {"sequence_length", score.sequence_length},
                {"document_mask", score.document_mask},
                {"precision", score.precision},
                {"seconds", score.seconds}});
    return kExitDone;
  }
  fmt::print(
      "loss {:.4f}, perplexity {:.4g}, {:.4f} bits per byte\n"
      "{} tokens scored of {}, {} bytes, {} of {}\n"
      "{} in rows of {} tokens{}, computed in {} in {}\n",
      score.loss, score.perplexity(), score.bits_per_byte(), score.num_labels, score.num_tokens,
      score.num_bytes, counted(score.num_documents, "document"), question.corpus.string(),
      score.model, score.sequence_length,
      score.document_mask ? ", documents masked from each other" : "", score.precision,
      format_duration(score.seconds));
  return kExitDone;
}

}  // namespace

void add_score_command(CLI::App& app, CommandContext& context) {
  struct Options {
    std::string model;
    std::string tokens;
    std::string corpus;
    int64_t sequence_length = 0;
    DeviceArguments device;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "score", "Print the log-probabilities of given tokens, or how well a text is predicted");
  as_path(command->add_option("--model", options->model,
                              "a Hugging Face folder, a checkpoint or a run"))
      ->required();
  CLI::Option* tokens = as_path_of_a_disk(
      command->add_option("--tokens", options->tokens,
                          "a JSON file, a list of lists of token ids: the log-probability of each "
                          "token given those before it"));
  CLI::Option* corpus = as_path(command->add_option(
      "--corpus", options->corpus,
      "a corpus of `skein data ingest`: loss, perplexity and bits per byte of its documents"));
  corpus->excludes(tokens);
  command
      ->add_option("--sequence-length", options->sequence_length,
                   "of --corpus, tokens in a row; default: the run's, of a Hugging Face model 2048")
      ->needs(corpus)
      ->check(whole_number_from(2, INT32_MAX));
  command->add_flag("--json", options->json, "of --corpus: print one JSON document")->needs(corpus);
  add_device_options(*command, options->device);
  command->callback([&context, options] {
    context.computes = true;
    context.run = [options] {
      if (options->tokens.empty() && options->corpus.empty()) {
        fail(ErrorCode::kUsage,
             "--tokens or --corpus is required: a JSON file of token ids, or a corpus of text, to "
             "score");
      }
      if (options->corpus.empty()) {
        return print_logprobs(options->model, options->tokens, options->device);
      }
      return print_corpus_score({.model = options->model,
                                 .corpus = options->corpus,
                                 .sequence_length = options->sequence_length,
                                 .device = options->device.kind,
                                 .threads = options->device.threads},
                                options->json);
    };
  });
}

}  // namespace skein
