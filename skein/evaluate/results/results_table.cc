// results_table: the table that a person reads.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "skein/evaluate/results/results_json.h"
#include "skein/evaluate/results/sample_line.h"

namespace skein {
namespace {

constexpr size_t kColumns = 9;
using Row = std::array<std::string, kColumns>;

std::string version_text(const jinja::Value& metadata) {
  const jinja::Value* version =
      metadata.is(jinja::Kind::kDict) ? metadata.as_dict().find("version") : nullptr;
  return version == nullptr ? "N/A" : python_json(*version);
}

const char* arrow_of(const TaskMetric& score) {
  if (!score.higher_is_better) return "";
  return *score.higher_is_better ? "↑" : "↓";
}

void add_rows(std::vector<Row>& rows, std::string title, std::string version,
              const std::string& shots, std::vector<TaskMetric> scores) {
  std::sort(scores.begin(), scores.end(), [](const TaskMetric& a, const TaskMetric& b) {
    return a.metric + "," + a.filter < b.metric + "," + b.filter;
  });
  if (scores.empty()) rows.push_back({title, version, "", shots, "", "", "", "", ""});
  for (const TaskMetric& score : scores) {
    rows.push_back({title, version, score.filter, shots, score.metric, arrow_of(score),
                    fmt::format("{:.4f}", score.value), "±",
                    score.error ? fmt::format("{:.4f}", *score.error) : "N/A"});
    title.clear();
    version.clear();
  }
}

size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string written(const std::vector<Row>& rows) {
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  const auto is_number = [](size_t column) {
    return column == 1 || column == 3 || column == 6 || column == 8;
  };
  const auto add = [&](const Row& row, bool is_head) {
    for (size_t i = 0; i < kColumns; ++i) {
      const std::string blanks(widths[i] - width_of(row[i]), ' ');
      text += is_number(i) && !is_head ? "|" + blanks + row[i] : "|" + row[i] + blanks;
    }
    text += "|\n";
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    add(rows[i], i == 0);
    if (i > 0) continue;
    for (size_t column = 0; column < kColumns; ++column) {
      const size_t dashes = std::max<size_t>(widths[column], 1);
      text += is_number(column) ? "|" + std::string(dashes - 1, '-') + ":"
                                : "|" + std::string(dashes, '-');
    }
    text += "|\n";
  }
  return text;
}

}  // namespace

std::string results_table(const Evaluation& evaluation) {
  std::vector<Row> rows = {
      {"Tasks", "Version", "Filter", "n-shot", "Metric", "", "Value", "", "Stderr"}};
  const std::function<void(const TaskNode&, int)> add = [&](const TaskNode& node, int depth) {
    const std::string indent =
        depth == 0 ? "" : std::string(static_cast<size_t>(depth), ' ') + "- ";
    const auto title = [&](const std::string& name, const std::string& alias) {
      return indent + (alias.empty() ? name : alias);
    };
    for (const TaskScores& task : evaluation.tasks) {
      if (!node.task || task.task->task != node.task->task) continue;
      add_rows(rows, title(task.task->task, task.task->alias), version_text(task.task->metadata),
               fmt::format("{}", task.num_fewshot), task.scores);
    }
    for (const GroupScores& group : evaluation.groups) {
      if (!node.group || group.group->name != node.group->name) continue;
      add_rows(rows, title(group.group->name, group.group->alias),
               version_text(group.group->metadata), "", group.scores);
      for (const TaskNode& child : group.group->children) add(child, depth + 1);
    }
  };
  for (const TaskNode& node : evaluation.asked) add(node, 0);
  return written(rows);
}

}  // namespace skein
