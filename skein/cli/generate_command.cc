// skein generate --model HF_DIR_OR_CHECKPOINT --prompt TEXT [--max-tokens N] [--temperature T]
//                [--top-p P] [--seed S]
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "skein/backends/backend.h"
#include "skein/cli/commands.h"
#include "skein/data/tokenizer.h"
#include "skein/infer/inference.h"
#include "skein/ops/ops.h"

namespace skein {
namespace {

// Prints the prompt and the text that each token adds, but waits while the bytes of a character are
// incomplete.
class TextPrinter {
 public:
  TextPrinter(const Tokenizer& tokenizer, std::string prompt, std::vector<int32_t> tokens)
      : tokenizer_(tokenizer),
        prompt_(std::move(prompt)),
        tokens_(std::move(tokens)),
        shown_(tokenizer.decode(tokens_).size()) {}

  void add(int32_t token) {
    tokens_.push_back(token);
    const std::string text = tokenizer_.decode(tokens_);
    if (text.ends_with("\xEF\xBF\xBD")) return;  // U+FFFD: an incomplete character
    show(text);
  }
  void finish() { show(tokenizer_.decode(tokens_) + "\n"); }

 private:
  void show(const std::string& text) {
    std::fputs(prompt_.c_str(), stdout);
    prompt_.clear();
    if (text.size() <= shown_) return;
    std::fwrite(text.data() + shown_, 1, text.size() - shown_, stdout);
    flush_output();
    shown_ = text.size();
  }

  const Tokenizer& tokenizer_;
  std::string prompt_;  // until it is shown, so that what fails at once prints nothing
  std::vector<int32_t> tokens_;
  size_t shown_;
};

// Of at least one token, that another may follow.
void check_prompt(const ModelSource& source, const std::vector<int32_t>& prompt) {
  if (prompt.empty()) {
    fail(ErrorCode::kUsage,
         "--prompt is empty, and the tokenizer {} has no token for the beginning of a text: "
         "expected a text to continue",
         source.tokenizer().string());
  }
  const int64_t longest = source.config().max_position_embeddings;
  if (static_cast<int64_t>(prompt.size()) < longest) return;
  fail(ErrorCode::kUsage,
       "--prompt has {} tokens, and the model is meant for {} at most (max_position_embeddings), "
       "new ones included: expected a prompt of at most {} tokens",
       prompt.size(), longest, longest - 1);
}

}  // namespace

void add_generate_command(CLI::App& app, CommandContext& context) {
  struct Options {
    std::string model;
    std::string prompt;
    GenerateOptions generate;
    CLI::Option* max_tokens = nullptr;
    int threads = 0;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("generate", "Continue a text");
  as_path(command->add_option("--model", options->model,
                              "a Hugging Face folder, a checkpoint or a run"))
      ->required();
  command->add_option("--prompt", options->prompt, "the text to continue")->required();
  GenerateOptions& generate = options->generate;
  options->max_tokens =
      command->add_option("--max-tokens", generate.max_tokens, "new tokens at most, 128")
          ->check(whole_number_from(1));
  command->add_option("--temperature", generate.temperature, "0: always the likeliest token; 0.8")
      ->check(number_from(0));
  command->add_option("--top-p", generate.top_p, "probability mass that is drawn from, 0.95")
      ->check(number_between(0, 1));
  command->add_option("--seed", generate.seed, "of the draws, 1")->check(whole_number_from(0));
  command->add_option("--threads", options->threads, "0: all cores")->check(whole_number_from(0));
  command->callback([&context, options] {
    context.computes = true;
    context.run = [options] {
      const ModelSource source(options->model);
      if (source.tokenizer().empty()) {
        fail(ErrorCode::kNotFound,
             "{} has no tokenizer: expected a tokenizer.model or "
             "tokenizer.json in it",
             source.path().string());
      }
      const auto tokenizer = Tokenizer::load(source.tokenizer());
      std::vector<int32_t> prompt;
      if (tokenizer->bos_id() >= 0) prompt.push_back(tokenizer->bos_id());
      tokenizer->encode(options->prompt, prompt);
      check_prompt(source, prompt);
      const auto asked = static_cast<int64_t>(prompt.size()) + options->generate.max_tokens;
      const int64_t longest = source.config().max_position_embeddings;
      if (options->max_tokens->count() > 0 && asked > longest) {
        fmt::print(
            stderr,
            "--max-tokens {}: the model is meant for {} tokens at most (max_position_embeddings), "
            "and the prompt has {}: generating at most {}\n",
            options->generate.max_tokens, longest, prompt.size(),
            longest - static_cast<int64_t>(prompt.size()));
      }
      const auto device = make_device({.kind = "cpu", .threads = options->threads});
      options->generate.has_token = [&](int32_t id) { return tokenizer->has_token(id); };
      TextPrinter printer(*tokenizer, options->prompt, prompt);
      generate_tokens(source, *device, prompt, options->generate,
                      [&](int32_t token) { printer.add(token); });
      printer.finish();
      return kExitDone;
    };
  });
}

}  // namespace skein
