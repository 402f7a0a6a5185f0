#include "skein/evaluate/tasks/read_group.h"

#include <algorithm>
#include <array>
#include <utility>

#include "skein/evaluate/tasks/read_parts.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

constexpr std::array<std::string_view, 5> kGroupKeys = {"group", "group_alias", "task",
                                                        "aggregate_metric_list", "metadata"};
constexpr std::array<std::string_view, 4> kMetricKeys = {"metric", "filter_list", "aggregation",
                                                         "weight_by_size"};

AggregateMetric read_metric(const Fields& fields) {
  fields.allow(kMetricKeys);
  AggregateMetric metric;
  metric.metric = fields.text_or("metric", "");
  if (metric.metric.empty()) fields.refuse("metric", "missing; expected a name, such as acc");
  if (fields.value("aggregation").is(Kind::kCallable))
    fields.refuse("aggregation", "a function of Python, which is not run; expected mean",
                  ErrorCode::kUnsupported);
  if (const std::string name = fields.text_or("aggregation", "mean"); name != "mean")
    fields.refuse("aggregation", name + "; expected mean");
  if (!fields.value("filter_list").is_undefined())
    metric.filters = read_names(fields, "filter_list");
  metric.weight_by_size = fields.boolean("weight_by_size").value_or(true);
  return metric;
}

}  // namespace

bool is_group_key(std::string_view key) {
  return std::find(kGroupKeys.begin(), kGroupKeys.end(), key) != kGroupKeys.end();
}

TaskGroup read_group(const Fields& fields, const std::string& name,
                     const std::filesystem::path& file, const std::string& source) {
  TaskGroup group;
  group.file = file;
  group.name = name;
  group.alias = fields.text("group_alias").value_or("");
  group.metadata = read_metadata(fields, source);
  if (const Value list = fields.value("aggregate_metric_list"); list.is(Kind::kDict)) {
    group.metrics.push_back(read_metric(Fields(list, fields.where() + ": aggregate_metric_list")));
  } else {
    for (const Value& one : dicts_of(fields, "aggregate_metric_list")) {
      group.metrics.push_back(read_metric(Fields(one, fields.where() + ": aggregate_metric_list")));
    }
  }
  return group;
}

}  // namespace skein
