#include "skein/evaluate/metrics/code_metric.h"

#include <algorithm>
#include <memory>

#include "skein/base/error.h"
#include "skein/evaluate/metrics/filter_steps.h"
#include "skein/evaluate/metrics/python_regex.h"
#include "skein/evaluate/tasks/known_files.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

constexpr std::string_view kFence = "```";

const std::string& text_of(const Value& answer) {
  if (answer.is_string()) return answer.text();
  fail(ErrorCode::kInvalid, "an answer is a {}: expected a text", jinja::type_name(answer));
}

const std::string& column_text(const FilteredDocument& of, std::string_view name) {
  const Value* const found =
      of.document.is(Kind::kDict) ? of.document.as_dict().find(name) : nullptr;
  if (found != nullptr && found->is_string()) return found->text();
  fail(ErrorCode::kInvalid, "the document has no text in the column '{}'", name);
}

template <typename Program>
FilterStep each_answer(const Program& program) {
  return [program](const Value& answers, const FilteredDocument& of) {
    std::vector<Value> programs;
    for (const Value& answer : answers_of(answers)) {
      programs.push_back(Value::string(program(text_of(answer), of)));
    }
    return Value::list(std::move(programs));
  };
}

std::string first_block(const PythonRegex& block, const PythonRegex& fence,
                        const std::string& answer) {
  auto blocks = block.find_all(std::string(kFence) + answer);
  if (blocks.empty()) blocks = block.find_all(fence.substitute(kFence, answer));
  return blocks.empty() ? "" : blocks[0][0];
}

bool is_of_humaneval(std::string_view folder) {
  return folder == "humaneval" || folder == "humaneval_infilling";
}

std::vector<CodeMetric::Score> scores_at(const Value& k) {
  const std::vector<Value> all =
      k.is(Kind::kSequence) ? k.as_sequence().items : std::vector<Value>{k};
  std::vector<CodeMetric::Score> scores;
  for (const Value& one : all) {
    if (!one.is_integer() || one.as_integer() < 1) {
      fail(ErrorCode::kUsage,
           "the metric pass_at_k: k: expected whole numbers above 0, as [1, 10]");
    }
    scores.push_back({fmt::format("pass@{}", one.as_integer()), one.as_integer()});
  }
  if (scores.empty()) {
    fail(ErrorCode::kUsage, "the metric pass_at_k: k is empty: expected whole numbers, as [1, 10]");
  }
  return scores;
}

}  // namespace

CodeMetric code_metric(const MetricConfig& config) {
  const std::string_view folder = known_file(config.function).folder;
  const std::string name = called_name(config.function);
  const Options options(config.options, fmt::format("the metric {}:", config.name));
  if (is_of_humaneval(folder) && name == "pass_at_k") {
    options.allow({"k"});
    const Value* const k = options.find("k");
    return {scores_at(k == nullptr ? Value::none() : *k)};
  }
  if (folder == "mbpp" && name == "pass_at_1") {
    options.allow({});
    return {{{config.name, 1}}};
  }
  fail(ErrorCode::kUnsupported,
       "the metric {} is a function of Python, which Skein does not run. Built in are pass_at_k of "
       "humaneval and humaneval_infilling, and pass_at_1 of mbpp, of lm-evaluation-harness 0.4.13",
       config.name);
}

FilterStep code_step(const Options& options) {
  options.allow({"filter_fn"});
  const Value* const function = options.find("filter_fn");
  const Value called = function == nullptr ? Value() : *function;
  const std::string_view folder = known_file(called).folder;
  const std::string name = called_name(called);
  if (folder == "humaneval" && name == "build_predictions") {
    return each_answer([](const std::string& answer, const FilteredDocument& of) {
      return column_text(of, "prompt") + answer;
    });
  }
  if (folder == "humaneval" && name == "build_predictions_instruct") {
    return each_answer([](const std::string& answer, const FilteredDocument& of) {
      return column_text(of, "prompt") + answer.substr(0, answer.find(kFence));
    });
  }
  if (folder == "humaneval_infilling" && name == "build_predictions") {
    return each_answer([](const std::string& answer, const FilteredDocument& of) {
      return column_text(of, "prompt") + answer + column_text(of, "suffix");
    });
  }
  if (folder == "mbpp" && name == "build_predictions") {
    const auto block = std::make_shared<PythonRegex>(R"((?s)```(?:\w+)?\n?(.*?)\n?```)");
    const auto fence = std::make_shared<PythonRegex>("```python");
    return each_answer([block, fence](const std::string& answer, const FilteredDocument&) {
      return first_block(*block, *fence, answer);
    });
  }
  fail(ErrorCode::kUnsupported,
       "filter_fn {} is a function of Python, which Skein does not run. Built in are those of "
       "humaneval, humaneval_infilling and mbpp of lm-evaluation-harness 0.4.13",
       name.empty() ? "is missing, or" : name);
}

}  // namespace skein
