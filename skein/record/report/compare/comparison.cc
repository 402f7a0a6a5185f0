#include "skein/record/report/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "skein/base/text/visible_text.h"

namespace skein {
namespace {

struct ComparedRow {
  std::string name;
  std::vector<std::string> cells;
};
using ComparedRows = std::vector<ComparedRow>;

// Columns of the terminal, as far as one character is one column.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, width_of(text)), ' ');
}

ComparedRow row_of_runs(const std::string& name, const ComparedRuns& runs,
                        const std::string ComparedRun::*text) {
  ComparedRow row{name, {}};
  for (const ComparedRun& run : runs.list) row.cells.push_back(visible_line(run.*text));
  return row;
}

// In the order in which the first run that has it names it.
std::vector<std::string> figure_names(const ComparedRuns& runs) {
  std::vector<std::string> names;
  for (const ComparedRun& run : runs.list) {
    for (const RunFigure& figure : run.figures) {
      if (std::find(names.begin(), names.end(), figure.name) == names.end()) {
        names.push_back(figure.name);
      }
    }
  }
  const auto group = [](const std::string& name) {
    if (name.starts_with("eval.")) return 2;
    return name.starts_with("loss") || name.starts_with("validation.") ? 0 : 1;
  };
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return group(a) < group(b); });
  return names;
}

ComparedRows setting_rows(const ComparedRuns& runs) {
  ComparedRows rows;
  for (const SettingDifference& difference : differences_of(runs)) {
    ComparedRow row{visible_line(difference.key), {}};
    for (const std::optional<std::string>& value : difference.values) {
      row.cells.push_back(!value ? "-" : value->empty() ? "\"\"" : visible_line(*value));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

ComparedRows figure_rows(const ComparedRuns& runs) {
  ComparedRows rows;
  for (const std::string& name : figure_names(runs)) {
    ComparedRow row{visible_line(name), {}};
    for (const ComparedRun& run : runs.list) {
      const RunFigure* figure = run.find(name);
      row.cells.push_back(figure == nullptr ? "-" : figure->text);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// The columns of runs `begin` to the end of what fits `width`; returns that end.
size_t add_block(const ComparedRows& rows, size_t begin, size_t num_runs, size_t width,
                 std::string& text) {
  size_t name_width = 0;
  for (const ComparedRow& row : rows) name_width = std::max(name_width, width_of(row.name));
  std::vector<size_t> widths;
  size_t end = begin;
  for (size_t used = name_width; end < num_runs; ++end) {
    size_t column = 0;
    for (const ComparedRow& row : rows) {
      if (!row.cells.empty()) column = std::max(column, width_of(row.cells[end]));
    }
    used += column + 2;
    if (end > begin && used > width) break;
    widths.push_back(column);
  }
  for (const ComparedRow& row : rows) {
    std::string line = padded(row.name, name_width);
    for (size_t i = begin; i < end && !row.cells.empty(); ++i) {
      line += "  " + padded(row.cells[i], widths[i - begin]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return end;
}

}  // namespace

std::string comparison_text(const ComparedRuns& runs, int width) {
  ComparedRows rows = {row_of_runs("run", runs, &ComparedRun::name),
                       row_of_runs("state", runs, &ComparedRun::state)};
  ComparedRows settings = setting_rows(runs);
  rows.push_back({"", {}});
  if (settings.empty()) rows.push_back({"the settings are equal", {}});
  rows.insert(rows.end(), settings.begin(), settings.end());
  rows.push_back({"", {}});
  const ComparedRows figures = figure_rows(runs);
  rows.insert(rows.end(), figures.begin(), figures.end());

  std::string text;
  for (size_t begin = 0; begin < runs.list.size();) {
    if (begin > 0) text += "\n";
    begin = add_block(rows, begin, runs.list.size(), static_cast<size_t>(std::max(width, 1)), text);
  }
  return text;
}

OrderedJson comparison_json(const ComparedRuns& runs) {
  OrderedJson list = OrderedJson::array(), differences = OrderedJson::array();
  for (const ComparedRun& run : runs.list) {
    OrderedJson metrics = OrderedJson::object();
    for (const RunFigure& figure : run.figures) metrics[figure.name] = figure.value;
    OrderedJson one = OrderedJson::object();
    one["run"] = run.folder;
    one["name"] = run.name;
    one["state"] = run.state;
    one["metrics"] = std::move(metrics);
    one["report"] = run.report;
    one["notes"] = run.notes;
    list.push_back(std::move(one));
  }
  for (const SettingDifference& difference : differences_of(runs)) {
    OrderedJson values = OrderedJson::array();
    for (const std::optional<std::string>& value : difference.values) {
      values.push_back(value ? OrderedJson(*value) : OrderedJson(nullptr));
    }
    OrderedJson one = OrderedJson::object();
    one["key"] = difference.key;
    one["values"] = std::move(values);
    differences.push_back(std::move(one));
  }
  OrderedJson json = OrderedJson::object();
  json["runs"] = std::move(list);
  json["differences"] = std::move(differences);
  json["notes"] = runs.notes;
  return json;
}

}  // namespace skein
