#include "skein/cli/inputs/reading_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "skein/prepare/ingest.h"

namespace skein {
namespace {

constexpr std::pair<const char*, InvalidUtf8> kPolicies[] = {{"fail", InvalidUtf8::kFailAlways},
                                                             {"replace", InvalidUtf8::kReplace},
                                                             {"skip", InvalidUtf8::kSkip}};

constexpr std::pair<char, char> kEscapes[] = {
    {'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'f', '\f'}, {'\\', '\\'}};

// Replaces \n and the like, as people write what a shell hands over as two characters. Returns what
// is wrong.
std::string take_escapes(std::string& text) {
  if (text.empty()) return "is empty: expected what stands between texts";
  std::string taken;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      taken += text[i];
      continue;
    }
    const char next = ++i < text.size() ? text[i] : ' ';
    const auto* found = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                                     [&](const auto& escape) { return escape.first == next; });
    if (found == std::end(kEscapes)) {
      return fmt::format(
          "{}: a backslash stands before n, r, t or f, for a line break, a "
          "carriage return, a tab or a form feed, or before a backslash, for itself",
          text);
    }
    taken += found->second;
  }
  text = std::move(taken);
  return "";
}

std::string with_escapes(std::string_view text) {
  std::string written;
  for (const char byte : text) {
    const auto* found = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                                     [&](const auto& escape) { return escape.second == byte; });
    if (found == std::end(kEscapes)) {
      written += byte;
    } else {
      written += {'\\', found->first};
    }
  }
  return written;
}

}  // namespace

void add_reading_options(CLI::App& command, const ReadingOptions& options) {
  command.add_option(
      "--text-column", options.text_column,
      "the key or column that holds the documents (data.text: in an object or structure data); "
      "else the first of text, content and raw_content that a file has");
  command.add_flag("--as-text", options.as_text,
                   "take .json, .csv and the like as they stand, a document a file");
  std::optional<InputFormat>& format = options.format;
  command
      .add_option_function<std::string>(
          "--format", [&format](const std::string& name) { format = format_named(name); },
          "of all inputs, whatever their names: text, lines (of text, a document each), jsonl, "
          "json, csv, parquet, arrow or warc")
      ->check(
          CLI::IsMember(std::vector<std::string>(std::begin(kFormatNames), std::end(kFormatNames)))
              .description(""));
  command
      .add_option("--document-separator", options.document_separator,
                  "the separator between the documents of a text file, such as '<|endoftext|>' or "
                  "'\\n\\n'; without it a text file is one document")
      ->transform(CLI::Validator([](std::string& text) { return take_escapes(text); }, ""));
  command.add_flag("--skip-invalid-lines", options.skip_invalid_lines,
                   "pass over JSON lines that are not valid instead of stopping");
  command
      .add_option("--max-invalid-lines", options.max_invalid_lines,
                  "the share of lines that may be passed over, beyond 100, 0.01; 0: none")
      ->needs("--skip-invalid-lines")
      ->check(number_between(0, 1));
  InvalidUtf8& invalid_utf8 = options.invalid_utf8;
  command
      .add_option_function<std::string>(
          "--invalid-utf8",
          [&invalid_utf8](const std::string& name) {
            for (const auto& [policy, value] : kPolicies) {
              if (name == policy) invalid_utf8 = value;
            }
          },
          "what becomes of text that is not UTF-8: fail, replace or skip; if not given, "
          "such texts in folders are passed over")
      ->check(CLI::IsMember({"fail", "replace", "skip"}).description(""));
  command
      .add_option("--max-expansion", options.max_expansion,
                  "how many times its size a file may give that is more than a GiB, 1000; 0: any")
      ->check(whole_number_from(0));
}

std::vector<std::string> reading_words(const ReadingOptions& options) {
  std::vector<std::string> words;
  const auto add = [&](bool is_given, std::initializer_list<std::string> more) {
    if (is_given) words.insert(words.end(), more);
  };
  const IngestOptions defaults;
  add(options.text_column != defaults.text_column, {"--text-column", options.text_column});
  add(options.as_text, {"--as-text"});
  add(options.format.has_value(), {"--format", name_of(options.format)});
  add(!options.document_separator.empty(),
      {"--document-separator", with_escapes(options.document_separator)});
  add(options.skip_invalid_lines, {"--skip-invalid-lines", "--max-invalid-lines",
                                   fmt::format("{}", options.max_invalid_lines)});
  const auto* policy =
      std::find_if(std::begin(kPolicies), std::end(kPolicies),
                   [&](const auto& each) { return each.second == options.invalid_utf8; });
  if (policy != std::end(kPolicies)) add(true, {"--invalid-utf8", policy->first});
  add(options.max_expansion != defaults.max_expansion,
      {"--max-expansion", std::to_string(options.max_expansion)});
  return words;
}

std::string threads_of_task(int num_threads) {
  return num_threads > 0 ? std::to_string(num_threads) : "\"${SLURM_CPUS_ON_NODE:-1}\"";
}

}  // namespace skein
