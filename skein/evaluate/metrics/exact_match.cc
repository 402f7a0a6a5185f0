// Scores of generated text: score_generated of document_scores.h.
//
// Texts are compared as numpy compares them: without NULs at their ends; and what lower() makes of
// a list is cut to the longest text that went in.
#include <algorithm>
#include <cstring>

#include "skein/base/error.h"
#include "skein/base/text/utf8.h"
#include "skein/evaluate/metrics/document_scores.h"
#include "skein/jinja/values/printed.h"
#include "skein/jinja/values/text.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
constexpr std::string_view kDigits = "0123456789";

std::string without(const std::string& text, std::string_view removed) {
  std::string kept;
  for (const char c : text) {
    if (c == '\0' || removed.find(c) == removed.npos) kept += c;
  }
  return kept;
}

void strip_nuls(std::vector<std::string>& texts) {
  for (std::string& text : texts) {
    while (!text.empty() && text.back() == '\0') text.pop_back();
  }
}

std::vector<std::string> simplified(std::vector<std::string> texts,
                                    const ExactMatchOptions& options) {
  for (const PythonRegex& regex : options.regexes_to_ignore) {
    for (std::string& text : texts) text = regex.substitute("", text);
    strip_nuls(texts);
  }
  strip_nuls(texts);
  if (options.ignore_case) {
    int64_t longest = 0;
    for (const std::string& text : texts) {
      longest = std::max(longest, jinja::count_characters(text));
    }
    for (std::string& text : texts) {
      text = jinja::lower(text);
      if (jinja::count_characters(text) > longest) text.resize(jinja::offset_of(text, longest));
    }
  }
  const auto remove = [&](std::string_view characters) {
    for (std::string& text : texts) text = without(text, characters);
    strip_nuls(texts);
  };
  if (options.ignore_punctuation) remove(kPunctuation);
  if (options.ignore_numbers) remove(kDigits);
  return texts;
}

bool are_texts(const std::vector<Value>& values) {
  return std::all_of(values.begin(), values.end(), [](const Value& v) { return v.is_string(); });
}

// What is equal, of answers and targets; one of either is compared with all of the other.
std::vector<bool> matches(const std::vector<Value>& answers, const std::vector<Value>& targets,
                          const ExactMatchOptions& options) {
  const size_t count = std::max(answers.size(), targets.size());
  if (answers.size() != targets.size() && answers.size() != 1 && targets.size() != 1) {
    fail(ErrorCode::kInvalid, "there are {} answers and {} targets: expected 1 of either",
         answers.size(), targets.size());
  }
  const auto at = [](const auto& values, size_t i) { return values.size() == 1 ? 0 : i; };
  std::vector<bool> equal(count);
  if (are_texts(answers) && are_texts(targets)) {
    const auto texts = [&](const std::vector<Value>& values) {
      std::vector<std::string> all;
      for (const Value& value : values) all.push_back(value.text());
      return simplified(std::move(all), options);
    };
    const std::vector<std::string> ours = texts(answers), theirs = texts(targets);
    for (size_t i = 0; i < count; ++i) equal[i] = ours[at(ours, i)] == theirs[at(theirs, i)];
    return equal;
  }
  for (const Value* value : {&answers[0], &targets[0]}) {
    if (options.needs_text() && !value->is_string()) {
      fail(ErrorCode::kInvalid,
           "an answer or a target is a {}: the options of exact_match need a "
           "text",
           jinja::type_name(*value));
    }
  }
  for (size_t i = 0; i < count; ++i) {
    equal[i] = jinja::equal(answers[at(answers, i)], targets[at(targets, i)]);
  }
  return equal;
}

double exact_match(const Value& answer, const std::vector<Value>& targets,
                   const ExactMatchOptions& options, bool any_is_enough) {
  if (targets.empty()) fail(ErrorCode::kInvalid, "the document has no target");
  const std::vector<Value> answers =
      answer.is(Kind::kSequence) ? answer.as_sequence().items : std::vector<Value>{answer};
  if (answers.empty()) fail(ErrorCode::kInvalid, "the filter gives no answer");
  if (answer.is(Kind::kSequence) && !options.regexes_to_ignore.empty()) {
    fail(ErrorCode::kInvalid,
         "the filter gives a list of answers, and regexes_to_ignore needs one: add the filter "
         "take_first");
  }
  const std::vector<bool> equal = matches(answers, targets, options);
  const auto hits = static_cast<double>(std::count(equal.begin(), equal.end(), true));
  if (any_is_enough) return hits > 0 ? 1.0 : 0.0;
  return hits / static_cast<double>(equal.size());
}

Value chosen(const Value& choices, const Value& index) {
  if (!choices.is(Kind::kSequence) || !index.is_integer()) {
    fail(ErrorCode::kInvalid,
         "the target is a {}, of choices that are a {}: expected an index of "
         "a list",
         jinja::type_name(index), jinja::type_name(choices));
  }
  const std::vector<Value>& items = choices.as_sequence().items;
  const int64_t count = std::ssize(items), i = index.as_integer(), at = i < 0 ? i + count : i;
  if (at < 0 || at >= count) {
    fail(ErrorCode::kInvalid, "the target is {}, and there are {} choices", i, count);
  }
  return items[static_cast<size_t>(at)];
}

std::vector<Value> targets_of(const GeneratedAnswer& answer, bool has_bypass) {
  jinja::Budget budget{jinja::Limits{}};
  const auto listed = [&](const Value& target) -> std::vector<Value> {
    if (target.is(Kind::kSequence)) return target.as_sequence().items;
    return {target};
  };
  if (!answer.choices.is_undefined()) {
    const Value target = chosen(answer.choices, answer.target);
    return answer.has_several_targets ? listed(target) : std::vector<Value>{target};
  }
  if (answer.has_several_targets) return jinja::items_of(answer.target, budget);
  if (has_bypass || answer.answer.is(Kind::kSequence)) return {answer.target};
  if (answer.answer.is_string()) {
    return {Value::string(jinja::printed(answer.target, budget))};
  }
  if (answer.answer.kind() != answer.target.kind()) {
    fail(ErrorCode::kInvalid, "the filter gives a {}, and the target is a {}: expected a text",
         jinja::type_name(answer.answer), jinja::type_name(answer.target));
  }
  return {answer.target};
}

}  // namespace

std::vector<MetricScore> score_generated(const GeneratedAnswer& answer,
                                         const std::vector<ScoredMetric>& metrics) {
  const bool has_bypass = std::any_of(metrics.begin(), metrics.end(),
                                      [](const ScoredMetric& m) { return m.name == "bypass"; });
  const std::vector<Value> targets = targets_of(answer, has_bypass);
  std::vector<MetricScore> scores;
  for (const ScoredMetric& metric : metrics) {
    if (metric.name == "bypass") {
      scores.push_back({metric.name, NoScore{}});
      continue;
    }
    scores.push_back({metric.name, exact_match(answer.answer, targets, metric.exact_match,
                                               answer.has_several_targets)});
  }
  return scores;
}

}  // namespace skein
