// skein generate --model HF_DIR_OR_CHECKPOINT --prompt TEXT [--max-tokens N] [--temperature T]
//                [--top-p P] [--top-k K] [--seed S] [--device auto|cpu|cuda]
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "skein/cli/commands/commands.h"
#include "skein/cli/inputs/device_arguments.h"
#include "skein/cli/shared/print.h"
#include "skein/infer/inference.h"
#include "skein/infer/text_stream.h"
#include "skein/ops/ops.h"
#include "skein/weights/generation_defaults.h"
#include "skein/weights/source_tokenizer.h"

namespace skein {
namespace {

// Prints the prompt, and the text that each token adds.
class TextPrinter {
 public:
  TextPrinter(const Tokenizer& tokenizer, std::string prompt, std::vector<int32_t> tokens)
      : stream_(tokenizer, std::move(tokens)), prompt_(std::move(prompt)) {}

  void add(int32_t token) { show(stream_.add(token)); }
  void finish() { show(stream_.finish() + "\n"); }

 private:
  void show(const std::string& text) {
    std::fputs(prompt_.c_str(), stdout);
    prompt_.clear();
    if (text.empty()) return;
    const std::string shown = on_terminal_ ? terminal_text(text) : text;
    std::fwrite(shown.data(), 1, shown.size(), stdout);
    flush_output();
  }

  TextStream stream_;
  std::string prompt_;  // until it is shown, so that what fails at once prints nothing
  const bool on_terminal_ = ::isatty(STDOUT_FILENO) == 1;
};

// Of at least one token, that another may follow.
void check_prompt(const ModelSource& source, const std::vector<int32_t>& prompt) {
  if (prompt.empty()) {
    fail(ErrorCode::kUsage,
         "--prompt is empty, and the tokenizer {} has no token for the beginning of a text: "
         "expected a text to continue",
         source.tokenizer().string());
  }
  const TextLimit limit = text_limit(source.config());
  if (static_cast<int64_t>(prompt.size()) < limit.tokens) return;
  fail(ErrorCode::kUsage,
       "--prompt has {} tokens, and the model is meant for {} at most ({}), new ones included: "
       "expected a prompt of at most {} tokens",
       prompt.size(), limit.tokens, limit.key, limit.tokens - 1);
}

struct GenerateArguments {
  std::string model;
  std::string prompt;
  GenerateOptions generate;
  CLI::Option *max_tokens = nullptr, *temperature = nullptr, *top_p = nullptr, *top_k = nullptr;
  std::string special_tokens = "parse";
  DeviceArguments device;
};

// What no option says is as the model's generation_config.json has it, which is said.
void take_defaults(const ModelSource& source, GenerateArguments& options) {
  const GenerationDefaults defaults = generation_defaults(source);
  options.generate.eos_ids = defaults.eos_ids;
  const auto is_given = [](const CLI::Option* option) { return option->count() > 0; };
  std::vector<std::string> taken;
  const auto take = [&](const CLI::Option* option, const char* name, auto& value,
                        const auto& theirs) {
    if (is_given(option) || !theirs || value == *theirs) return;
    value = *theirs;
    taken.push_back(fmt::format("{} {}", name, value));
  };
  const bool is_greedy = defaults.do_sample == std::optional(false) && !is_given(options.top_p) &&
                         !is_given(options.top_k);
  take(options.temperature, "--temperature", options.generate.temperature,
       is_greedy ? std::optional(0.0) : defaults.temperature);
  if (options.generate.temperature > 0) {
    take(options.top_p, "--top-p", options.generate.top_p, defaults.top_p);
    take(options.top_k, "--top-k", options.generate.top_k, defaults.top_k);
  }
  if (!taken.empty()) print_line(stderr, "{} of {}", fmt::join(taken, " "), defaults.file);
  if (!defaults.unused.empty()) {
    print_line(stderr, "{}: not used: {}", defaults.file, fmt::join(defaults.unused, ", "));
  }
}

}  // namespace

void add_generate_command(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<GenerateArguments>();
  CLI::App* command = app.add_subcommand("generate", "Continue a text");
  as_path(command->add_option("--model", options->model,
                              "a Hugging Face folder, a checkpoint or a run"))
      ->required();
  command->add_option("--prompt", options->prompt, "the text to continue")->required();
  GenerateOptions& generate = options->generate;
  options->max_tokens =
      command->add_option("--max-tokens", generate.max_tokens, "new tokens at most, 128")
          ->check(whole_number_from(1));
  options->temperature =
      command
          ->add_option("--temperature", generate.temperature, "0: always the likeliest token; 0.8")
          ->check(number_from(0));
  options->top_p =
      command->add_option("--top-p", generate.top_p, "probability mass that is drawn from, 0.95")
          ->check(number_between(0, 1));
  options->top_k =
      command->add_option("--top-k", generate.top_k, "of the likeliest tokens; 0: of all")
          ->check(whole_number_from(0));
  command
      ->add_option("--special-tokens", options->special_tokens,
                   "parse: a prompt that spells a special token is that token; text: its "
                   "characters; parse")
      ->check(CLI::IsMember({"parse", "text"}).description(""));
  command->add_option("--seed", generate.seed, "of the draws, 1")->check(whole_number_from(0));
  add_device_options(*command, options->device);
  command->callback([&context, options] {
    context.computes = true;
    context.run = [options] {
      options->device.prepare();
      const ModelSource source(options->model);
      const auto tokenizer = tokenizer_of(source);
      std::vector<int32_t> prompt;
      if (tokenizer->bos_id() >= 0) prompt.push_back(tokenizer->bos_id());
      tokenizer->encode_as(
          options->special_tokens == "parse" ? SpecialTokens::kParse : SpecialTokens::kText,
          options->prompt, prompt);
      // A rendered conversation spells BOS itself.
      const bool has_two = tokenizer->bos_id() >= 0 && options->special_tokens == "parse" &&
                           prompt.size() > 1 && prompt[1] == prompt[0];
      if (has_two) prompt.erase(prompt.begin());
      check_prompt(source, prompt);
      const auto asked = static_cast<int64_t>(prompt.size()) + options->generate.max_tokens;
      const TextLimit limit = text_limit(source.config());
      if (options->max_tokens->count() > 0 && asked > limit.tokens) {
        fmt::print(stderr,
                   "--max-tokens {}: the model is meant for {} tokens at most ({}), and the prompt "
                   "has {}: generating at most {}\n",
                   options->generate.max_tokens, limit.tokens, limit.key, prompt.size(),
                   limit.tokens - static_cast<int64_t>(prompt.size()));
      }
      const auto device = options->device.make();
      take_defaults(source, *options);
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
