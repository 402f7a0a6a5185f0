#include "skein/evaluate/tasks/config_dict.h"

#include <memory>
#include <string_view>
#include <utility>

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

// Sets keys in order; undefined values are left out.
class Builder {
 public:
  Builder& set(std::string_view key, const Value& value) {
    if (!value.is_undefined()) dict_->set(Value::string(std::string(key)), value);
    return *this;
  }
  Builder& set_or_none(std::string_view key, const Value& value) {
    return set(key, value.is_undefined() ? Value::none() : value);
  }
  Builder& set_all(const Value& others) {
    for (const auto& [key, value] : others.as_dict().entries) dict_->set(key, value);
    return *this;
  }
  Value take() { return Value::of(Kind::kDict, std::move(dict_)); }

 private:
  std::shared_ptr<jinja::Dict> dict_ = std::make_shared<jinja::Dict>();
};

Value text_or_undefined(const std::string& text) {
  return text.empty() ? Value() : Value::string(text);
}

Value text_or_undefined(const std::optional<std::string>& text) {
  return text ? Value::string(*text) : Value();
}

// A name, or the function whose name it is.
Value named(const std::string& name, const Value& function) {
  return function.is_undefined() ? text_or_undefined(name) : function;
}

std::string_view name_of(OutputType type) {
  switch (type) {
    case OutputType::kMultipleChoice:
      return "multiple_choice";
    case OutputType::kLoglikelihood:
      return "loglikelihood";
    case OutputType::kRolling:
      return "loglikelihood_rolling";
    case OutputType::kGenerateUntil:
      return "generate_until";
  }
  return "";
}

Value metric_list(const std::vector<MetricConfig>& metrics) {
  std::vector<Value> list;
  for (const MetricConfig& metric : metrics) {
    Builder one;
    one.set("metric", named(metric.name, metric.function));
    one.set("aggregation", named(metric.aggregation, metric.aggregation_function));
    if (metric.higher_is_better)
      one.set("higher_is_better", Value::boolean(*metric.higher_is_better));
    if (metric.hf_evaluate) one.set("hf_evaluate", Value::boolean(*metric.hf_evaluate));
    list.push_back(one.set_all(metric.options).take());
  }
  return list.empty() ? Value() : Value::list(std::move(list));
}

Value filter_list(const std::vector<FilterConfig>& filters) {
  std::vector<Value> list;
  for (const FilterConfig& filter : filters) {
    std::vector<Value> steps;
    for (const FilterConfig::Step& step : filter.steps) {
      Builder one;
      one.set("function", named(step.function, step.called)).set_all(step.options);
      steps.push_back(one.take());
    }
    Builder one;
    one.set("name", Value::string(filter.name)).set("filter", Value::list(std::move(steps)));
    list.push_back(one.take());
  }
  return list.empty() ? Value() : Value::list(std::move(list));
}

Value fewshot_config(const FewShotConfig& fewshot) {
  Builder dict;
  dict.set("sampler", Value::string(fewshot.sampler));
  dict.set_or_none("split", text_or_undefined(fewshot.split));
  dict.set_or_none("process_docs", fewshot.process_docs);
  dict.set_or_none("fewshot_indices", fewshot.indices);
  dict.set_or_none("samples", fewshot.samples);
  dict.set_or_none("doc_to_text", fewshot.doc_to_text);
  dict.set_or_none("doc_to_choice", fewshot.doc_to_choice);
  dict.set_or_none("doc_to_target", fewshot.doc_to_target);
  dict.set_or_none("gen_prefix", fewshot.gen_prefix);
  dict.set("fewshot_delimiter", Value::string(fewshot.fewshot_delimiter));
  dict.set("target_delimiter", Value::string(fewshot.target_delimiter));
  return dict.take();
}

void set_dataset(const TaskConfig& task, Builder& dict) {
  dict.set("dataset_path", text_or_undefined(task.dataset_path));
  dict.set("dataset_name", text_or_undefined(task.dataset_name));
  dict.set("dataset_kwargs", task.dataset_kwargs);
  dict.set("training_split", text_or_undefined(task.training_split));
  dict.set("validation_split", text_or_undefined(task.validation_split));
  dict.set("test_split", text_or_undefined(task.test_split));
}

}  // namespace

Value config_dict(const TaskConfig& task) {
  Builder dict;
  dict.set("task", Value::string(task.task));
  dict.set("task_alias", text_or_undefined(task.alias));
  set_dataset(task, dict);
  // Not that of fewshot_config, which may differ.
  const Value* const split = task.written.as_dict().find("fewshot_split");
  if (split != nullptr && split->is_string()) dict.set("fewshot_split", *split);
  dict.set("process_docs", task.process_docs);
  dict.set("doc_to_text", task.doc_to_text);
  dict.set("doc_to_target", task.doc_to_target);
  dict.set("unsafe_code", Value::boolean(task.unsafe_code));
  dict.set("doc_to_choice", task.doc_to_choice);
  dict.set("process_results", task.process_results);
  dict.set("description", task.description);
  dict.set("target_delimiter", Value::string(task.target_delimiter));
  dict.set("fewshot_delimiter", Value::string(task.fewshot_delimiter));
  dict.set("fewshot_config", fewshot_config(task.fewshot));
  if (task.num_fewshot) dict.set("num_fewshot", Value::integer(*task.num_fewshot));
  dict.set("metric_list", metric_list(task.metrics));
  dict.set("output_type", Value::string(std::string(name_of(task.output_type))));
  dict.set("generation_kwargs", task.generation_kwargs);
  dict.set("repeats", Value::integer(task.repeats));
  dict.set("filter_list", filter_list(task.filters));
  dict.set("should_decontaminate", Value::boolean(task.should_decontaminate));
  dict.set("doc_to_decontamination_query", task.doc_to_decontamination_query);
  dict.set("gen_prefix", task.gen_prefix);
  dict.set("metadata", task.metadata);
  return dict.take();
}

Value config_dict(const TaskGroup& group) {
  Builder dict;
  dict.set("group", Value::string(group.name));
  dict.set("group_alias", text_or_undefined(group.alias));
  std::vector<Value> names, metrics;
  for (const std::string& name : group.child_names()) names.push_back(Value::string(name));
  dict.set("task", Value::list(std::move(names)));
  for (const AggregateMetric& metric : group.metrics) {
    Value filters;
    if (metric.filters) {
      std::vector<Value> list;
      for (const std::string& name : *metric.filters) list.push_back(Value::string(name));
      filters = Value::list(std::move(list));
    }
    Builder one;
    one.set("metric", Value::string(metric.metric)).set_or_none("filter_list", filters);
    one.set("aggregation", Value::string("mean"));
    one.set("weight_by_size", Value::boolean(metric.weight_by_size));
    metrics.push_back(one.take());
  }
  if (!metrics.empty()) dict.set("aggregate_metric_list", Value::list(std::move(metrics)));
  dict.set("metadata", group.metadata);
  return dict.take();
}

}  // namespace skein
