#include "skein/evaluate/metrics/metric.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "skein/base/error.h"
#include "skein/evaluate/metrics/aggregate.h"
#include "skein/evaluate/metrics/document_scores.h"
#include "skein/evaluate/metrics/options.h"
#include "skein/jinja/values/printed.h"

namespace skein {
namespace {

std::string_view name_of(OutputType type) {
  constexpr std::array<std::string_view, 4> kNames = {"multiple_choice", "loglikelihood",
                                                      "loglikelihood_rolling", "generate_until"};
  return kNames[static_cast<size_t>(type)];
}

[[noreturn]] void refuse_metric(const std::string& name, OutputType type) {
  std::vector<std::string_view> of_type;
  for (const MetricRow& row : metric_rows()) {
    if (row.is_of(type)) of_type.push_back(row.name);
  }
  fail(ErrorCode::kUnsupported, "the metric {} of {} is not supported: expected one of {}", name,
       name_of(type), fmt::join(of_type, ", "));
}

ExactMatchOptions exact_match_options(const Options& options) {
  options.allow({"regexes_to_ignore", "ignore_case", "ignore_punctuation", "ignore_numbers"});
  ExactMatchOptions result;
  const jinja::Value* const regexes = options.find("regexes_to_ignore");
  for (const std::string& source : options.texts("regexes_to_ignore")) {
    result.regexes_to_ignore.emplace_back(source);
  }
  if (regexes != nullptr && !regexes->is(jinja::Kind::kNone) && result.regexes_to_ignore.empty()) {
    fail(ErrorCode::kUsage,
         "the metric exact_match: regexes_to_ignore is empty: expected an expression, or no such "
         "key");
  }
  result.ignore_case = options.truth("ignore_case");
  result.ignore_punctuation = options.truth("ignore_punctuation");
  result.ignore_numbers = options.truth("ignore_numbers");
  return result;
}

std::vector<std::string> names_of(const jinja::Value& options) {
  std::vector<std::string> names;
  if (!options.is(jinja::Kind::kDict)) return names;
  jinja::Budget budget{jinja::Limits{}};
  for (const auto& [key, value] : options.as_dict().entries) {
    names.push_back(jinja::printed(key, budget));
  }
  return names;
}

ScoredMetric make_code_metric(const MetricConfig& config, OutputType type) {
  ScoredMetric metric;
  metric.name = config.name;
  metric.code = code_metric(config);
  if (type != OutputType::kGenerateUntil) refuse_metric(config.name, type);
  metric.aggregation = config.aggregation.empty() ? "mean" : config.aggregation;
  check_aggregation(metric.aggregation, metric.name);
  metric.higher_is_better = config.higher_is_better.value_or(true);
  return metric;
}

}  // namespace

ScoredMetric make_metric(const MetricConfig& config, OutputType type) {
  if (!config.aggregation_function.is_undefined()) {
    fail(ErrorCode::kUnsupported,
         "the aggregation of the metric {} is a function of Python, which is not supported",
         config.name);
  }
  if (config.hf_evaluate.value_or(false)) {
    fail(ErrorCode::kUnsupported,
         "the metric {} has hf_evaluate, which loads a program: it is not supported", config.name);
  }
  if (!config.function.is_undefined()) return make_code_metric(config, type);
  const std::span<const MetricRow> rows = metric_rows();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const MetricRow& row) {
    return row.name == config.name && row.is_of(type);
  });
  if (found == rows.end()) refuse_metric(config.name, type);
  ScoredMetric metric;
  metric.name = config.name;
  metric.aggregation = config.aggregation.empty() ? found->aggregation : config.aggregation;
  check_aggregation(metric.aggregation, metric.name);
  metric.higher_is_better = config.higher_is_better.value_or(found->higher_is_better);
  if (type == OutputType::kGenerateUntil && metric.name == "exact_match") {
    metric.exact_match = exact_match_options(Options(config.options, "the metric exact_match:"));
  } else {
    metric.ignored_options = names_of(config.options);
  }
  return metric;
}

std::vector<ScoredMetric> make_metrics(const std::vector<MetricConfig>& configs, OutputType type) {
  std::vector<MetricConfig> all = configs;
  if (all.empty()) {
    using Names = std::vector<const char*>;
    const Names names = type == OutputType::kMultipleChoice  ? Names{"acc", "acc_norm"}
                        : type == OutputType::kLoglikelihood ? Names{"perplexity", "acc"}
                        : type == OutputType::kGenerateUntil
                            ? Names{"exact_match"}
                            : Names{"word_perplexity", "byte_perplexity", "bits_per_byte"};
    for (const char* const name : names) all.emplace_back().name = name;
  }
  std::vector<ScoredMetric> metrics;
  for (const MetricConfig& config : all) {
    // Of two with one name, Python's dict has the later in the place of the earlier.
    ScoredMetric metric = make_metric(config, type);
    const auto same = std::find_if(metrics.begin(), metrics.end(), [&](const ScoredMetric& one) {
      return one.name == metric.name;
    });
    if (same == metrics.end()) {
      metrics.push_back(std::move(metric));
    } else {
      *same = std::move(metric);
    }
  }
  return metrics;
}

}  // namespace skein
