#include "skein/evaluate/results/sample_line.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "skein/base/error.h"
#include "skein/evaluate/requests/answers.h"
#include "skein/jinja/values/printed.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

// Functions have no JSON.
Value without_functions(const Value& value) {
  if (value.is(Kind::kCallable)) return Value::string(value.as_callable().name);
  if (value.is(Kind::kSequence)) {
    std::vector<Value> items;
    for (const Value& item : value.as_sequence().items) items.push_back(without_functions(item));
    return Value::list(std::move(items));
  }
  if (value.is(Kind::kDict)) {
    auto dict = std::make_shared<jinja::Dict>();
    for (const auto& [key, item] : value.as_dict().entries) dict->set(key, without_functions(item));
    return Value::of(Kind::kDict, std::move(dict));
  }
  return value;
}

Value text(std::string text) { return Value::string(std::move(text)); }

class DictBuilder {
 public:
  void add(std::string key, Value value) { dict_->set(text(std::move(key)), std::move(value)); }
  Value made() { return Value::of(Kind::kDict, dict_); }

 private:
  std::shared_ptr<jinja::Dict> dict_ = std::make_shared<jinja::Dict>();
};

Value integer(int64_t value) { return Value::integer(value); }

Value value_of(const Score& score) {
  struct Visitor {
    Value operator()(double value) const { return Value::number(value); }
    Value operator()(const WeightedLoglikelihood& score) const {
      return Value::list({Value::number(score.loglikelihood), integer(score.weight)});
    }
    Value operator()(const LabelPair& labels) const {
      return Value::list({integer(labels.gold), integer(labels.predicted)});
    }
    Value operator()(const ClassProbabilities& classes) const {
      std::vector<Value> probabilities;
      for (const double value : classes.probabilities)
        probabilities.push_back(Value::number(value));
      return Value::list({integer(classes.gold), Value::list(std::move(probabilities))});
    }
    Value operator()(const NoScore&) const { return Value::none(); }
  };
  return std::visit(Visitor{}, score);
}

// What was asked, as the arguments of the harness's models.
Value arguments_of(const TaskConfig& task, const DocumentAnswers& document) {
  DictBuilder arguments;
  const auto& requests = document.asked.requests;
  for (size_t i = 0; i < requests.size(); ++i) {
    DictBuilder one;
    using Request = EvaluationRequest::Kind;
    if (requests[i].kind != Request::kRolling) one.add("arg_0", text(requests[i].context));
    if (requests[i].kind == Request::kGenerateUntil) {
      one.add("arg_1",
              task.generation_kwargs.is_undefined() ? Value::none() : task.generation_kwargs);
    } else {
      one.add(requests[i].kind == Request::kRolling ? "arg_0" : "arg_1",
              text(requests[i].continuation));
    }
    arguments.add(fmt::format("gen_args_{}", i), one.made());
  }
  return arguments.made();
}

// The harness writes numbers and truth values of answers as text.
Value answer_text(const ScoredAnswer& answer, bool is_rolling) {
  Value logprob = text(jinja::printed_float(answer.logprob));
  if (is_rolling) return logprob;
  return Value::list({std::move(logprob), text(answer.is_greedy ? "True" : "False")});
}

}  // namespace

std::string sample_line(const TaskConfig& task, const DocumentAnswers& document,
                        const Value& answer, const std::string& filter,
                        const std::vector<MetricScore>& scores,
                        const std::vector<ProgramResult>& programs) {
  const bool is_rolling = task.output_type == OutputType::kRolling;
  std::vector<Value> answers, filtered;
  for (const ScoredAnswer& scored : document.scored) {
    answers.push_back(Value::list({answer_text(scored, is_rolling)}));
    filtered.push_back(answer_text(scored, is_rolling));
  }
  for (const auto& samples : document.texts) {
    std::vector<Value> texts;
    for (const std::string& sample : samples) texts.push_back(text(sample));
    answers.push_back(Value::list(std::move(texts)));
    filtered.push_back(answer);
  }
  std::vector<Value> names;
  for (const MetricScore& score : scores) names.push_back(text(score.metric));
  const std::string target = shown(document.asked.target);
  const EvaluationRequest& first = document.asked.requests.front();
  DictBuilder line;
  line.add("doc_id", integer(document.asked.document));
  line.add("doc", document.asked.values);
  line.add("target", text(target));
  line.add("arguments", arguments_of(task, document));
  line.add("resps", Value::list(std::move(answers)));
  line.add("filtered_resps", Value::list(std::move(filtered)));
  line.add("filter", text(filter));
  line.add("metrics", Value::list(std::move(names)));
  line.add("doc_hash", text(sha256_text(python_json(document.asked.values, 2))));
  line.add("prompt_hash", text(sha256_text(is_rolling ? first.continuation : first.context)));
  line.add("target_hash", text(sha256_text(target)));
  for (const MetricScore& score : scores) line.add(score.metric, value_of(score.score));
  std::vector<Value> endings;
  for (const ProgramResult& program : programs) endings.push_back(text(program.reason));
  if (!programs.empty()) line.add("programs", Value::list(std::move(endings)));
  return python_json(line.made());
}

std::string python_json(const Value& value, int indent) {
  jinja::Budget budget{jinja::Limits{}};
  jinja::JsonForm form;
  if (indent > 0) {
    form.has_indent = true;
    form.indent = std::string(static_cast<size_t>(indent), ' ');
    form.item_separator.assign(1, ',');
  }
  return jinja::json_text(without_functions(value), form, budget);
}

std::string sha256_text(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    fail(ErrorCode::kInternal, "libcrypto has no SHA-256");
  }
  std::string hex;
  for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace skein
