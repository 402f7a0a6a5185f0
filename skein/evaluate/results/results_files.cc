#include "skein/evaluate/results/results_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

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

// The checkpoint of results that answer `asked`; "": they do not, or are of no checkpoint.
std::string checkpoint_of(const Json& results, const Json& asked) {
  const Json skein = results.value("skein", Json::object());
  if (!skein.is_object() || skein.value("asked", Json()) != asked) return "";
  const Json run = skein.value("run", Json::object());
  if (!run.is_object() || !run.contains("checkpoint")) return "";
  return run.at("checkpoint").is_string() ? run.at("checkpoint").get<std::string>() : "";
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
  write_file_atomic(written.front(), exact_json(json, written.front().string(), 2) + "\n");
  return written;
}

std::map<std::string, Json> known_results(const fs::path& folder, const std::string& model,
                                          const Json& asked) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder / folder_name(model), error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("results_") && name.ends_with(".json")) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());  // by date
  std::map<std::string, Json> known;
  for (const fs::path& file : files) {
    auto read = try_run([&] { return parse_json(read_file(file, kMostBytes), file.string()); });
    if (!read.ok() || !read.value().is_object()) continue;
    const std::string checkpoint = checkpoint_of(read.value(), asked);
    if (!checkpoint.empty()) known[checkpoint] = std::move(read.value());
  }
  return known;
}

}  // namespace skein
