#include "skein/prepare/clean/filters/document_filters.h"

namespace skein {
namespace {

constexpr std::string_view kEllipsis = "\u2026", kBullet = "\u2022";

// Occurrences that do not overlap.
int64_t count(std::string_view text, std::string_view part) {
  int64_t num = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) {
    ++num;
  }
  return num;
}

}  // namespace

std::optional<Rule> judge_gopher_quality(const DocumentWords& document, const CleanRules& rules) {
  const auto below = [&](Rule rule, double value) {
    return rules.is_on(rule) && value < rules.threshold(rule);
  };
  const auto above = [&](Rule rule, double value) {
    return rules.is_on(rule) && value > rules.threshold(rule);
  };
  const auto num_plain_words = static_cast<double>(document.num_plain_words());
  if (below(Rule::kShortDoc, num_plain_words)) return Rule::kShortDoc;
  if (above(Rule::kLongDoc, num_plain_words)) return Rule::kLongDoc;
  // 0 / 0 is not a number, and neither above nor below anything.
  const double average = static_cast<double>(document.num_plain_characters()) / num_plain_words;
  if (below(Rule::kBelowAverage, average)) return Rule::kBelowAverage;
  if (above(Rule::kAboveAverage, average)) return Rule::kAboveAverage;

  const std::string_view text = document.text();
  const auto num_words = static_cast<double>(document.num_words());
  if (above(Rule::kTooManyHashes, static_cast<double>(count(text, "#")) / num_words)) {
    return Rule::kTooManyHashes;
  }
  if (above(Rule::kTooManyEllipses,
            static_cast<double>(count(text, "...") + count(text, kEllipsis)) / num_words)) {
    return Rule::kTooManyEllipses;
  }
  int64_t num_bullets = 0, num_end_ellipses = 0;
  for (const TextLine& line : document.lines()) {
    const std::string_view stripped = text.substr(line.begin, line.end - line.begin);
    num_bullets += stripped.starts_with('-') || stripped.starts_with(kBullet);
    num_end_ellipses += stripped.ends_with("...") || stripped.ends_with(kEllipsis);
  }
  const auto num_lines = static_cast<double>(document.lines().size());
  if (above(Rule::kTooManyBullets, static_cast<double>(num_bullets) / num_lines)) {
    return Rule::kTooManyBullets;
  }
  if (above(Rule::kTooManyEndEllipses, static_cast<double>(num_end_ellipses) / num_lines)) {
    return Rule::kTooManyEndEllipses;
  }
  if (below(Rule::kBelowAlpha, static_cast<double>(document.num_words_with_letter()) / num_words)) {
    return Rule::kBelowAlpha;
  }
  if (below(Rule::kStopWords, document.num_stop_words())) return Rule::kStopWords;
  return std::nullopt;
}

}  // namespace skein
