#include "skein/evaluate/metrics/answer_filters.h"

#include <array>
#include <string_view>

#include "skein/base/error.h"
#include "skein/evaluate/metrics/code_metric.h"
#include "skein/evaluate/metrics/filter_steps.h"
#include "skein/jinja/values/budget.h"
#include "skein/jinja/values/text.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

const std::string& text_of(const Value& answer) {
  if (answer.is_string()) return answer.text();
  fail(ErrorCode::kInvalid, "an answer is a {}: expected a text", jinja::type_name(answer));
}

template <typename Change>
FilterStep each_text(const Change& change) {
  return [change](const Value& answers, const FilteredDocument&) {
    std::vector<Value> changed;
    for (const Value& answer : answers_of(answers)) {
      changed.push_back(Value::string(std::string(change(text_of(answer)))));
    }
    return Value::list(std::move(changed));
  };
}

Value first_answer(const Value& answers, const FilteredDocument&) {
  const std::vector<Value> all = answers_of(answers);
  if (all.empty()) fail(ErrorCode::kInvalid, "there is no answer: expected at least 1");
  return all[0];
}

// The answer that comes most often; of those, the earliest.
Value majority(const Value& answers, const FilteredDocument&) {
  jinja::Dict counts;
  for (const Value& answer : answers_of(answers)) {
    const Value* const count = counts.find(answer);
    counts.set(answer, Value::integer(count == nullptr ? 1 : count->as_integer() + 1));
  }
  if (counts.entries.empty()) fail(ErrorCode::kInvalid, "there is no answer: expected at least 1");
  const std::pair<Value, Value>* most = nullptr;
  for (const auto& entry : counts.entries) {
    if (most == nullptr || entry.second.as_integer() > most->second.as_integer()) most = &entry;
  }
  return Value::list({most->first});
}

FilterStep without_options(const Options& options, FilterStep step) {
  options.allow({});
  return step;
}

FilterStep made(const std::string& function, const Options& options, const std::string& owner) {
  if (function == "regex") return regex_step(options);
  if (function == "regex_pos") return regex_pos_step(options);
  if (function == "multi_choice_regex") return multi_choice_step(options);
  if (function == "map") return map_step(options);
  if (function == "custom") return code_step(options);
  if (function == "take_first_k") return take_first_k_step(options);
  if (function == "take_first") return without_options(options, first_answer);
  if (function == "majority_vote") return without_options(options, majority);
  if (function == "lowercase") return without_options(options, each_text(jinja::lower));
  if (function == "uppercase") return without_options(options, each_text(jinja::upper));
  if (function == "remove_whitespace") {
    return without_options(options, each_text([](std::string_view text) {
                             return jinja::strip(text, jinja::Side::kBoth, nullptr);
                           }));
  }
  fail(ErrorCode::kUnsupported,
       "{} is not supported: expected one of regex, regex_pos, multi_choice_regex, "
       "remove_whitespace, lowercase, uppercase, map, take_first, take_first_k, majority_vote",
       owner);
}

}  // namespace

std::vector<Value> answers_of(const Value& answers) {
  if (!answers.is_string() && !answers.is(Kind::kSequence)) {
    fail(ErrorCode::kInvalid, "the answers are a {}: expected a list", jinja::type_name(answers));
  }
  jinja::Budget budget{jinja::Limits{}};
  return jinja::items_of(answers, budget);
}

AnswerFilter::AnswerFilter(const FilterConfig& config) : name_(config.name) {
  for (const FilterConfig::Step& step : config.steps) {
    const std::string owner =
        fmt::format("filter {}: step {}, {},", name_, steps_.size() + 1, step.function);
    if (!step.called.is_undefined()) {
      fail(ErrorCode::kUnsupported, "{} is a function of Python, which is not supported", owner);
    }
    try {
      steps_.push_back(made(step.function, Options(step.options, owner), owner));
    } catch (const Error& error) {
      const std::string what = error.what();
      if (what.starts_with(owner)) throw;
      fail(error.code(), "{} {}", owner, what);
    }
    functions_.push_back(step.function);
  }
}

AnswerFilter AnswerFilter::take_first() {
  FilterConfig config;
  config.name = "none";
  config.steps.emplace_back().function = "take_first";
  return AnswerFilter(config);
}

std::vector<Value> AnswerFilter::apply(std::vector<Value> answers,
                                       const std::vector<Value>& documents) const {
  if (answers.size() != documents.size()) {
    fail(ErrorCode::kInternal, "filter {}: answers of {} documents, and {} documents", name_,
         answers.size(), documents.size());
  }
  for (size_t step = 0; step < steps_.size(); ++step) {
    for (size_t i = 0; i < answers.size(); ++i) {
      const auto place = [&] {
        return fmt::format("filter {}: step {}, {}: document {}", name_, step + 1, functions_[step],
                           i);
      };
      try {
        answers[i] = steps_[step](answers[i], {documents[i], i});
      } catch (const Error& error) {
        fail(error.code(), "{}: {}", place(), error.what());
      } catch (const jinja::Refusal& refusal) {
        fail(ErrorCode::kInvalid, "{}: {}", place(), refusal.what());
      }
    }
  }
  return answers;
}

}  // namespace skein
