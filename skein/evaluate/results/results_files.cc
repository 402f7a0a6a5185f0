#include "skein/evaluate/results/results_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/text/json_text.h"
#include "skein/evaluate/results/results_json.h"

namespace skein {
namespace {

constexpr int64_t kMostBytes = int64_t{64} << 20;

// The name of a model as part of a file's name, as lm-evaluation-harness has it.
std::string folder_name(const std::string& model) {
  std::string name;
  for (const char c : model) {
    const bool is_kept = std::string_view("\"<>:/|\\?*[]").find(c) == std::string_view::npos;
    if (is_kept) {
      name += c;
    } else if (!name.ends_with("__")) {
      name += "__";
    }
  }
  return name;
}

// The step of results that answer `asked`; nothing: they do not, or are of no checkpoint.
std::optional<int64_t> step_of(const Json& results, const Json& asked) {
  if (!results.is_object() || !results.contains("skein")) return std::nullopt;
  const Json& skein = results.at("skein");
  if (!skein.is_object() || !skein.contains("run") || !skein.contains("asked")) return std::nullopt;
  const Json& run = skein.at("run");
  const bool has_step =
      run.is_object() && run.contains("step") && run.at("step").is_number_integer();
  if (!has_step || skein.at("asked") != asked) return std::nullopt;
  return run.at("step").get<int64_t>();
}

}  // namespace

std::vector<fs::path> write_results(const fs::path& folder, const std::string& model,
                                    const Evaluation& evaluation, const OrderedJson& json,
                                    double date) {
  const fs::path place = folder / folder_name(model);
  make_folders(place);
  const std::string stamp = results_date(date);
  std::vector<fs::path> written;
  for (const TaskScores& task : evaluation.tasks) {
    if (task.samples.empty()) continue;
    written.push_back(place / fmt::format("samples_{}_{}.jsonl", task.task->task, stamp));
    write_file_atomic(written.back(), fmt::format("{}\n", fmt::join(task.samples, "\n")));
  }
  // Last: where it is, the others are.
  written.insert(written.begin(), place / ("results_" + stamp + ".json"));
  write_file_atomic(written.front(), exact_json(json, written.front().string(), 2));
  return written;
}

std::map<int64_t, Json> results_by_step(const fs::path& folder, const Json& asked) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("results_") && name.ends_with(".json")) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    return a.filename() < b.filename();  // by date
  });
  std::map<int64_t, Json> by_step;
  for (const fs::path& file : files) {
    auto read = try_run([&] { return parse_json(read_file(file, kMostBytes), file.string()); });
    if (!read.ok()) continue;
    if (const auto step = step_of(read.value(), asked)) by_step[*step] = read.value();
  }
  return by_step;
}

}  // namespace skein
