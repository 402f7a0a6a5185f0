#include "skein/cli/help/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "skein/config/fields.h"

namespace skein {
namespace {

// The words that may follow one command, such as ingest after "data", or --out after "data ingest".
struct CommandWords {
  std::string path;                // "" for the program itself, "data", "data ingest"
  std::vector<std::string> words;  // commands or options
  std::vector<std::string> helps;  // one for each word
  bool is_leaf = false;
};

void add_levels(const CLI::App& command, const std::string& path,
                std::vector<CommandWords>& levels) {
  CommandWords level{path, {}, {}, true};
  std::vector<const CLI::App*> below;
  for (const CLI::App* sub : command.get_subcommands({})) {
    if (sub->get_group().empty()) continue;  // hidden
    level.words.push_back(sub->get_name());
    level.helps.push_back(sub->get_description());
    below.push_back(sub);
  }
  level.is_leaf = below.empty();
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      level.words.push_back("--" + name);
      level.helps.push_back(option->get_description());
    }
  }
  levels.push_back(level);
  for (const CLI::App* sub : below) {
    add_levels(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), levels);
  }
}

std::vector<std::string> override_starts() {
  std::vector<std::string> starts;
  for (const ConfigField& field : config_fields()) {
    starts.push_back(fmt::format("{}.{}=", field.section, field.key));
  }
  return starts;
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char letter : text) result += letter == '\'' ? "'\\''" : std::string(1, letter);
  return result + "'";
}

// The function joins the commands typed so far to the path of a Level. bash and zsh split words
// alike.
constexpr std::string_view kBashFunction = R"(_skein() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} path='' word words
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case " {commands} " in
      *" $word "*) path+="${{path:+ }}$word" ;;
    esac
    [[ $word != -* ]] || break
  done
  COMPREPLY=()
  # bash takes = for a word of its own: --set run.steps= is not completed any further.
  if [[ ${{COMP_WORDS[COMP_CWORD-1]}} == --set ]]; then
    COMPREPLY=($(compgen -W '{overrides}' -- "$current"))
    compopt -o nospace 2>/dev/null
    return
  fi
  case $path in
{cases}  esac
  if [[ $current == -* || -z $leaf ]]; then COMPREPLY=($(compgen -W "$words" -- "$current")); fi
  [[ -z $leaf || ${{#COMPREPLY[@]}} -gt 0 ]] || {{
    COMPREPLY=($(compgen -f -- "$current"))
    compopt -o filenames 2>/dev/null
  }}
}}
)";

std::string bash_function(const std::vector<CommandWords>& levels) {
  std::vector<std::string> commands;
  std::string cases;
  for (const CommandWords& level : levels) {
    if (!level.path.empty()) commands.push_back(level.path.substr(level.path.rfind(' ') + 1));
    cases += fmt::format("    '{}') words='{}' leaf={} ;;\n", level.path,
                         fmt::join(level.words, " "), level.is_leaf ? "1" : "''");
  }
  cases += "    *) words='' leaf=1 ;;\n";
  std::string text = fmt::format(kBashFunction, fmt::arg("commands", fmt::join(commands, " ")),
                                 fmt::arg("overrides", fmt::join(override_starts(), " ")),
                                 fmt::arg("cases", cases));
  return text;
}

std::string bash_script(const std::vector<CommandWords>& levels) {
  return "# bash completion of skein: source it, or put it where bash-completion looks.\n" +
         bash_function(levels) + "complete -F _skein skein\n";
}

constexpr std::string_view kZshScript = R"(#compdef skein
# zsh completion of skein: a file _skein in a folder of $fpath.
_skein() {{
  local path_='' word
  local -a entries
  for word in "${{words[@]:1:$((CURRENT-2))}}"; do
    case " {commands} " in
      *" $word "*) path_+="${{path_:+ }}$word" ;;
    esac
    [[ $word != -* ]] || break
  done
  if [[ ${{words[CURRENT-1]}} == --set ]]; then
    compadd -S '' -- {overrides}
    return
  fi
  case $path_ in
{cases}    *) _files; return ;;
  esac
  if [[ -n $leaf && $words[CURRENT] != -* ]]; then
    _files
  else
    _describe skein entries
  fi
}}
if [[ $funcstack[1] == _skein ]]; then _skein "$@"; else compdef _skein skein; fi
)";

std::string zsh_script(const std::vector<CommandWords>& levels) {
  std::vector<std::string> commands;
  std::string cases;
  for (const CommandWords& level : levels) {
    if (!level.path.empty()) commands.push_back(level.path.substr(level.path.rfind(' ') + 1));
    std::vector<std::string> entries;
    for (size_t i = 0; i < level.words.size(); ++i) {
      entries.push_back(quoted(level.words[i] + ":" + level.helps[i]));
    }
    cases += fmt::format("    '{}') local leaf={}; entries=({}) ;;\n", level.path,
                         level.is_leaf ? "1" : "''", fmt::join(entries, " "));
  }
  return fmt::format(kZshScript, fmt::arg("commands", fmt::join(commands, " ")),
                     fmt::arg("overrides", fmt::join(override_starts(), " ")),
                     fmt::arg("cases", cases));
}

// fish evaluates a condition per word: here, that the commands typed so far are exactly the level's
// path.
std::string fish_script(const std::vector<CommandWords>& levels) {
  std::vector<std::string> commands;
  for (const CommandWords& level : levels) {
    if (!level.path.empty()) commands.push_back(level.path.substr(level.path.rfind(' ') + 1));
  }
  std::string text = fmt::format(
      "# fish completion of skein: a file skein.fish in a folder of $fish_complete_path.\n"
      "function __skein_at\n"
      "  set -l path\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    string match -q -- '-*' $word; and break\n"
      "    contains -- $word {}; and set -a path $word\n"
      "  end\n"
      "  test \"$path\" = \"$argv\"\n"
      "end\n",
      fmt::join(commands, " "));
  for (const CommandWords& level : levels) {
    const std::string condition = quoted("__skein_at " + level.path);
    for (size_t i = 0; i < level.words.size(); ++i) {
      const std::string& word = level.words[i];
      const std::string what = word.starts_with("--") ? "-l " + word.substr(2) : "-fa " + word;
      const std::string more =
          word == "--set"
              ? fmt::format(" -xa {}", quoted(fmt::format("{}", fmt::join(override_starts(), " "))))
              : "";
      text += fmt::format("complete -c skein -n {} {}{} -d {}\n", condition, what, more,
                          quoted(level.helps[i]));
    }
    if (!level.is_leaf) text += fmt::format("complete -c skein -n {} -f\n", condition);
  }
  return text;
}

}  // namespace

std::string completion_script(const CLI::App& app, const std::string& shell) {
  std::vector<CommandWords> levels;
  add_levels(app, "", levels);
  if (shell == "zsh") return zsh_script(levels);
  return shell == "fish" ? fish_script(levels) : bash_script(levels);
}

}  // namespace skein
