#include "skein/base/numbers/hash.h"
#include "skein/prepare/clean/filters/document_filters.h"

namespace skein {

std::optional<Rule> FineWeb::judge(std::string_view text, int64_t num_words) {
  const auto num_breaks = std::count(text.begin(), text.end(), '\n');
  seen_.clear(static_cast<size_t>(num_breaks) + 1);
  const double most_of_short = rules_.threshold(Rule::kShortLineLength);
  int64_t num_lines = 0, num_terminated = 0, num_short = 0;
  int64_t num_characters = 0, num_repeated_characters = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const int64_t line_characters = count_characters(line);
    num_characters += line_characters;
    begin = end + 1;
    if (reader_.strip_begin(line).empty()) continue;
    ++num_lines;
    const CharacterReader::ClassifiedCharacter last =
        reader_.last(line.data(), line.data() + line.size());
    num_terminated += (last.classes & character::kTerminal) != 0;
    num_short += static_cast<double>(line_characters) <= most_of_short;
    if (!seen_.add(hash_name(line))) num_repeated_characters += line_characters;
  }
  const auto share = [](int64_t part, int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  const auto above = [&](Rule rule, double value) {
    return rules_.is_on(rule) && value > rules_.threshold(rule);
  };
  if (num_lines == 0)
    return rules_.is_on(Rule::kBlank) ? std::optional(Rule::kBlank) : std::nullopt;
  if (rules_.is_on(Rule::kLinePunctRatio) &&
      share(num_terminated, num_lines) < rules_.threshold(Rule::kLinePunctRatio)) {
    return Rule::kLinePunctRatio;
  }
  if (above(Rule::kShortLineRatio, share(num_short, num_lines))) return Rule::kShortLineRatio;
  if (above(Rule::kCharDupRatio, share(num_repeated_characters, num_characters))) {
    return Rule::kCharDupRatio;
  }
  if (above(Rule::kListRatio, share(num_breaks, num_words))) return Rule::kListRatio;
  return std::nullopt;
}

}  // namespace skein
