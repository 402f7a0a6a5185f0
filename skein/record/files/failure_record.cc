#include "skein/record/files/failure_record.h"

#include <algorithm>
#include <exception>

#include "skein/base/ending.h"
#include "skein/base/text/log.h"
#include "skein/record/files/events.h"
#include "skein/record/files/metrics.h"

namespace skein {
namespace {

// The whole lines within the last 64 KiB of a file.
std::string end_of(const fs::path& path) {
  constexpr size_t kBytes = 64 << 10;
  if (!fs::exists(path) || fs::file_size(path) == 0) return "";
  const MappedFile file(path);
  const std::string_view text = file.text();
  if (text.size() <= kBytes) return std::string(text);
  const size_t line = text.find('\n', text.size() - kBytes);
  return line == std::string_view::npos ? "" : std::string(text.substr(line + 1));
}

// The last object that `wanted` accepts; null where there is none.
template <typename Wanted>
Json last_object(const fs::path& path, const Wanted& wanted) {
  std::string text = end_of(path);
  while (!text.empty()) {
    if (text.back() == '\n') text.pop_back();
    const size_t begin = text.rfind('\n') + 1;  // npos + 1 is 0
    const Json json = Json::parse(text.substr(begin), nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && wanted(json)) return json;
    text.resize(begin);
  }
  return nullptr;
}

double time_of(const Json& json) {
  const auto time = json.find("time");
  return time != json.end() && time->is_number() ? time->get<double>() : 0;
}

}  // namespace

std::optional<int64_t> last_known_step(const fs::path& run_dir) {
  const Json metrics = last_object(
      run_dir / "metrics.jsonl", [](const Json& json) { return parse_metrics(json).has_value(); });
  const Json start = last_object(run_dir / "events.jsonl", [](const Json& json) {
    const auto step = json.find("step");
    return json.value("event", Json()) == "start" && step != json.end() &&
           step->is_number_integer();
  });
  if (metrics.is_null() && start.is_null()) return std::nullopt;
  if (metrics.is_null()) return start.at("step").get<int64_t>();
  if (start.is_null() || time_of(metrics) >= time_of(start))
    return metrics.at("step").get<int64_t>();
  return start.at("step").get<int64_t>();
}

void record_failure(const fs::path& run_dir, int rank, const Error& error, bool fatal) noexcept {
  try {
    // A start that was refused is no failure of the run in this folder, and its user was told.
    if (is_refusal(error.code()) || !fs::exists(run_dir / "events.jsonl")) return;
    OrderedJson fields = OrderedJson::object();
    if (const auto step = last_known_step(run_dir)) fields["step"] = *step;
    fields["rank"] = rank;
    fields["reason"] = error.what();
    fields["fatal"] = fatal;
    EventLog(run_dir).append("failure", fields);
  } catch (const std::exception& problem) {
    log::error("cannot write down in {} why the run failed: {}", run_dir.string(), problem.what());
  }
}

}  // namespace skein
