#include "skein/cli/help/parse_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "skein/base/text/nearest.h"
#include "skein/config/notes.h"
#include "skein/config/other_words.h"

namespace skein {
namespace {

// The commands of `group` that are not hidden, and their subcommands: "report", "data ingest".
std::vector<std::string> commands_of(const CLI::App& group, const std::string& prefix = "") {
  std::vector<std::string> names;
  for (const CLI::App* command : group.get_subcommands({})) {
    if (command->get_group().empty()) continue;
    names.push_back(prefix + command->get_name());
    const std::vector<std::string> below = commands_of(*command, names.back() + " ");
    names.insert(names.end(), below.begin(), below.end());
  }
  return names;
}

struct OtherCommand {
  std::string_view names;  // elsewhere, between spaces
  std::string_view advice;
};

constexpr OtherCommand kOtherCommands[] = {
    {" help ", "skein --help lists the commands, and skein COMMAND --help says what one takes"},
    {" resume continue restart ", "skein train with the same arguments continues a run"},
    {" sweep tune hpo ", "skein train CONFIG --sweep KEY=V1,V2 trains a run for each value"},
    {" finetune sft continue_pretraining ",
     "skein train CONFIG --set model.init_from=MODEL begins with the weights of a model"},
    {" pretrain fit ", "did you mean train?"},
    {" evaluate validate test perplexity ",
     "skein eval asks a model the questions of tasks, skein score --corpus FILE gives its loss "
     "on a text, and skein train CONFIG --validate-only that of the validation sets"},
    {" infer inference sample predict chat complete ", "did you mean generate?"},
    {" tokenize preprocess prepare_data ",
     "skein data ingest makes a corpus, which training "
     "tokenizes on the way; skein data tokenizer trains a tokenizer"},
    {" convert to_hf save_pretrained ", "skein checkpoint export writes a Hugging Face model"},
    {" torchrun mpirun srun submit ", "did you mean launch?"},
    {" bench benchmark profile ",
     "skein plan predicts a step, and skein report RUN says what one "
     "took"},
    {" logs status tail ", "did you mean report?"},
};

Explanation there_is_no_command(const CLI::App& group, const std::string& given) {
  for (const OtherCommand& other : kOtherCommands) {
    if (group.get_parent() != nullptr) break;  // the words are those of whole programs
    if (other.names.find(fmt::format(" {} ", given)) == other.names.npos) continue;
    return {fmt::format("there is no command {}: {}", given, other.advice), true};
  }
  const std::vector<std::string> names = commands_of(group);
  // A subcommand may be meant by its last word.
  std::vector<std::string_view> candidates(names.begin(), names.end());
  for (std::string_view& name : candidates) name.remove_prefix(name.rfind(' ') + 1);
  const std::string_view nearest = nearest_name(given, candidates);
  for (size_t i = 0; i < names.size() && !nearest.empty(); ++i) {
    if (candidates[i] == nearest) {
      return {fmt::format("there is no command {}: did you mean {}?", given, names[i]), true};
    }
  }
  return {fmt::format("there is no command {}", given)};
}

// The innermost command that was parsed, with its full name, such as "data ingest".
struct Reached {
  const CLI::App* command;
  std::string name;
};

Reached reached_command(const CLI::App& app) {
  Reached reached{&app, ""};
  while (!reached.command->get_subcommands().empty()) {
    reached.command = reached.command->get_subcommands().front();
    reached.name += (reached.name.empty() ? "" : " ") + reached.command->get_name();
  }
  return reached;
}

bool takes_overrides(const CLI::App& command) {
  return command.get_option_no_throw("--set") != nullptr;
}

// The value given with an option: "5" of "--steps 5" and of "--steps=5".
std::string value_behind(const std::string& text, int argc, char** argv) {
  const size_t equals = text.find('=');
  std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  for (int i = 1; i + 1 < argc && equals == std::string::npos; ++i) {
    if (argv[i] == text && argv[i + 1][0] != '-') value = argv[i + 1];
  }
  return value.empty() ? "…" : value;
}

// Explains the unknown option `text`.
std::string explain_option(const Reached& reached, const std::string& text, int argc, char** argv) {
  const std::string dashed = text.substr(0, text.find('='));
  const std::string name = dashed.substr(std::min(dashed.find_first_not_of('-'), dashed.size()));
  const std::string start =
      fmt::format("{} has no option {}", reached.name.empty() ? "skein" : reached.name, dashed);
  std::vector<std::string> own;
  for (const CLI::Option* option : reached.command->get_options()) {
    for (const std::string& long_name : option->get_lnames()) own.push_back(long_name);
  }
  const std::vector<std::string_view> candidates(own.begin(), own.end());
  std::string_view nearest = nearest_name(name, candidates);
  std::vector<std::string> keys;
  const OtherWord* word = nullptr;
  if (takes_overrides(*reached.command)) {
    keys = keys_meant_by(name);
    word = find_other_word(name);
  }
  if (word != nullptr && word->keys.empty()) {
    return fmt::format("{}: {}", start, explain_other_word(*word, ""));
  }
  if (word != nullptr) {
    keys = keys_of(*word);
    nearest = {};
  }
  // Prefers a configuration key to an option, unless the option's name is nearer.
  const auto distance = [&](const std::string& key) {
    return std::min(edit_distance(name, key), edit_distance(name, key.substr(key.find('.') + 1)));
  };
  if (!keys.empty() && !nearest.empty() && edit_distance(name, nearest) < distance(keys[0])) {
    keys.clear();
  }
  if (!keys.empty()) {
    const std::string value = value_behind(text, argc, argv);
    std::vector<std::string> forms;
    for (const std::string& key : keys) {
      forms.push_back(fmt::format("--set {}={}", key, is_value_of(key, value) ? value : "…"));
    }
    return fmt::format(
        "{}: did you mean {}?{}", start, fmt::join(forms, " or "),
        word == nullptr || word->meaning.empty() ? "" : fmt::format(" ({})", plain_meaning(*word)));
  }
  if (!nearest.empty()) return fmt::format("{}: did you mean --{}?", start, nearest);
  return fmt::format("{}: skein {}--help lists them", start,
                     reached.name.empty() ? "" : reached.name + " ");
}

// Explains surplus arguments; "" where there are none.
std::string explain_extras(const CLI::App& app, int argc, char** argv) {
  const Reached reached = reached_command(app);
  const std::vector<std::string> extras = reached.command->remaining();
  for (const std::string& extra : extras) {
    if (extra.starts_with('-')) return explain_option(reached, extra, argc, argv);
  }
  if (extras.empty()) return "";
  if (takes_overrides(*reached.command) && looks_like_override(extras[0])) {
    return fmt::format("{} stands alone: did you mean --set {}?", extras[0], extras[0]);
  }
  return fmt::format(
      "{} does not expect {}: skein {} --help says what it takes, and a value that "
      "has spaces stands in quotes",
      reached.name, fmt::join(extras, " "), reached.name);
}

}  // namespace

Explanation explain_unknown_command(const CLI::App& app, int argc, char** argv) {
  const CLI::App* group = &app;
  for (int i = 1; i < argc; ++i) {
    const auto commands = group->get_subcommands({});
    if (commands.empty() || argv[i][0] == '-') return {};
    const auto found = std::find_if(commands.begin(), commands.end(), [&](const CLI::App* command) {
      return command->get_name() == argv[i];
    });
    if (found == commands.end()) return there_is_no_command(*group, argv[i]);
    group = *found;
  }
  return {};
}

Explanation explain_parse_error(const CLI::App& app, const CLI::ParseError& error, int argc,
                                char** argv) {
  Explanation explained = explain_unknown_command(app, argc, argv);
  if (!explained.text.empty()) return explained;
  // A required option is missing since it was misspelled, perhaps: "--ot FILE".
  const bool has_extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                          dynamic_cast<const CLI::RequiredError*>(&error) != nullptr ||
                          app.get_subcommands().empty();  // "skein --vrsion"
  if (has_extras) explained = {explain_extras(app, argc, argv), true};
  if (!explained.text.empty()) return explained;
  // A check of a value says what it expects.
  return {error.what(), dynamic_cast<const CLI::ValidationError*>(&error) != nullptr};
}

}  // namespace skein
