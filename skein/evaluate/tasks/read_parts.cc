#include "skein/evaluate/tasks/read_parts.h"

#include <array>
#include <memory>
#include <utility>

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

constexpr std::array<std::string_view, 11> kFewShotKeys = {
    "sampler",         "split",         "process_docs",  "fewshot_indices", "samples",
    "doc_to_text",     "doc_to_choice", "doc_to_target", "gen_prefix",      "fewshot_delimiter",
    "target_delimiter"};
constexpr std::array<std::string_view, 4> kMetricKeys = {"metric", "aggregation",
                                                         "higher_is_better", "hf_evaluate"};
constexpr std::array<std::string_view, 2> kFilterKeys = {"name", "filter"};
constexpr std::array<std::string_view, 1> kStepKeys = {"function"};

// The name of `key`, which is a text or a function; of a function, `function` gets it and the name
// is that behind the last point, as in Python.
std::string name_of(const Fields& fields, std::string_view key, Value& function) {
  const Value value = fields.value(key);
  if (value.is_string() && !value.text().empty()) return value.text();
  if (!value.is(Kind::kCallable))
    fields.refuse_kind(key, value, "a name, or `!function file.name`");
  function = value;
  const std::string& name = value.as_callable().name;
  return name.substr(name.rfind('.') + 1);
}

MetricConfig read_metric(const Fields& fields) {
  MetricConfig metric;
  metric.name = name_of(fields, "metric", metric.function);
  if (fields.dict().find("aggregation") != nullptr)
    metric.aggregation = name_of(fields, "aggregation", metric.aggregation_function);
  metric.higher_is_better = fields.boolean("higher_is_better");
  metric.hf_evaluate = fields.boolean("hf_evaluate");
  metric.options = fields.others(kMetricKeys);
  return metric;
}

FilterConfig read_filter(const Fields& fields) {
  fields.allow(kFilterKeys);
  FilterConfig filter;
  filter.name = fields.text_or("name", "");
  if (filter.name.empty()) fields.refuse("name", "missing; expected a name");
  for (const Value& one : dicts_of(fields, "filter")) {
    const Fields step_fields(one, fields.where() + ": filter " + filter.name);
    FilterConfig::Step step;
    step.function = name_of(step_fields, "function", step.called);
    step.options = step_fields.others(kStepKeys);
    filter.steps.push_back(std::move(step));
  }
  if (fields.value("filter").is_undefined())
    fields.refuse("filter", "missing; expected a list, such as [{function: take_first}]");
  return filter;
}

// The dicts of a list; an empty one is refused: it would be no list at all elsewhere.
std::vector<Value> some_dicts(const Fields& task, std::string_view key) {
  std::vector<Value> dicts = dicts_of(task, key);
  if (dicts.empty() && !task.value(key).is_undefined())
    task.refuse(key, "an empty list; remove the key to have the default");
  return dicts;
}

}  // namespace

std::vector<MetricConfig> read_metrics(const Fields& task) {
  std::vector<MetricConfig> metrics;
  for (const Value& one : some_dicts(task, "metric_list")) {
    metrics.push_back(read_metric(Fields(one, task.where() + ": metric_list")));
  }
  return metrics;
}

std::vector<FilterConfig> read_filters(const Fields& task) {
  std::vector<FilterConfig> filters;
  for (const Value& one : some_dicts(task, "filter_list")) {
    filters.push_back(read_filter(Fields(one, task.where() + ": filter_list")));
  }
  return filters;
}

FewShotConfig read_fewshot(const Fields& task, const TaskConfig& config) {
  FewShotConfig fewshot;
  fewshot.split = task.text("fewshot_split");
  fewshot.process_docs = config.process_docs;
  fewshot.doc_to_text = config.doc_to_text;
  fewshot.doc_to_choice = config.doc_to_choice;
  fewshot.doc_to_target = config.doc_to_target;
  fewshot.gen_prefix = config.gen_prefix;
  fewshot.fewshot_delimiter = config.fewshot_delimiter;
  fewshot.target_delimiter = config.target_delimiter;
  const Value written = task.value("fewshot_config");
  if (written.is_undefined()) return fewshot;
  const Fields fields(written, task.where() + ": fewshot_config");
  fields.allow(kFewShotKeys);
  if (fields.value("sampler").is(Kind::kCallable))
    fields.refuse("sampler", "a class of Python, which is not run; expected default or first_n",
                  ErrorCode::kUnsupported);
  fewshot.sampler = fields.text_or("sampler", "default");
  if (fewshot.sampler != "default" && fewshot.sampler != "first_n")
    fields.refuse("sampler", fewshot.sampler + "; expected default or first_n");
  if (fields.dict().find("split") != nullptr) fewshot.split = fields.text("split");
  const auto set = [&](std::string_view key, Value& value) {
    if (fields.dict().find(key) != nullptr) value = fields.value(key);
  };
  set("samples", fewshot.samples);
  set("fewshot_indices", fewshot.indices);
  set("process_docs", fewshot.process_docs);
  set("doc_to_text", fewshot.doc_to_text);
  set("doc_to_choice", fewshot.doc_to_choice);
  set("doc_to_target", fewshot.doc_to_target);
  set("gen_prefix", fewshot.gen_prefix);
  fewshot.fewshot_delimiter = fields.text_or("fewshot_delimiter", fewshot.fewshot_delimiter);
  fewshot.target_delimiter = fields.text_or("target_delimiter", fewshot.target_delimiter);
  return fewshot;
}

Value read_dict(const Fields& fields, std::string_view key) {
  const Value value = fields.value(key);
  if (!value.is_undefined() && !value.is(Kind::kDict)) fields.refuse_kind(key, value, "a dict");
  return value;
}

Value read_metadata(const Fields& fields, const std::string& source) {
  const Value* const written = fields.dict().find("metadata");
  auto dict = std::make_shared<jinja::Dict>();
  if (written != nullptr && written->is(Kind::kDict)) {
    *dict = written->as_dict();
  } else if (source.empty()) {
    read_dict(fields, "metadata");  // refuses another kind
  } else if (written != nullptr) {
    dict->set(Value::string("_metadata"), *written);
  }
  if (!source.empty()) dict->set(Value::string("config_source"), Value::string(source));
  return Value::of(Kind::kDict, std::move(dict));
}

std::vector<std::string> read_names(const Fields& fields, std::string_view key) {
  const Value value = fields.value(key);
  if (value.is_undefined()) return {};
  if (value.is_string()) return {value.text()};
  std::vector<std::string> names;
  if (!value.is(Kind::kSequence)) fields.refuse_kind(key, value, "a name or a list of names");
  for (const Value& item : value.as_sequence().items) {
    if (!item.is_string()) fields.refuse_kind(key, item, "names as its items");
    names.push_back(item.text());
  }
  return names;
}

}  // namespace skein
