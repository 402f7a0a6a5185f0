#include "skein/evaluate/tasks/request_file.h"

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/text/json.h"

namespace skein {
namespace {

std::string name_of(const fs::path& file) {
  const fs::path whole = fs::absolute(file).lexically_normal();
  const std::string name = whole.filename().string();
  if (!name.starts_with("requests.jsonl")) return name.substr(0, name.find(".jsonl"));
  const fs::path folder = whole.parent_path();
  return folder.parent_path().filename().string() + ":" + folder.filename().string();
}

std::optional<int64_t> num_shots_beside(const fs::path& file) {
  const fs::path config = file.parent_path() / "config.json";
  if (!is_there(config)) return std::nullopt;
  const Json json = read_json(config.string());
  const auto task = json.find("task_config");
  if (task == json.end() || !task->is_object()) return std::nullopt;
  const auto shots = task->find("num_shots");
  if (shots == task->end() || !shots->is_number_integer()) return std::nullopt;
  return shots->get<int64_t>();
}

jinja::Value empty_dict() {
  return jinja::Value::of(jinja::Kind::kDict, std::make_shared<jinja::Dict>());
}

}  // namespace

bool is_request_file(std::string_view name) {
  return name.ends_with(".jsonl") || name.ends_with(".jsonl.gz");
}

std::shared_ptr<const TaskConfig> request_file_task(const fs::path& file) {
  if (!is_there(file)) {
    fail(ErrorCode::kNotFound, "{} is not there: expected a file of requests, or a task's name",
         file.string());
  }
  TaskConfig task;
  task.file = task.request_file = file;
  task.task = name_of(file);
  task.dataset_path = file.string();
  task.output_type = OutputType::kMultipleChoice;
  task.target_delimiter = "";
  task.num_fewshot = num_shots_beside(file);
  task.metadata = task.written = empty_dict();
  for (const char* name : {"acc", "acc_norm", "gold_bits_per_byte"}) {
    MetricConfig metric;
    metric.name = name;
    metric.options = empty_dict();
    task.metrics.push_back(std::move(metric));
  }
  return std::make_shared<const TaskConfig>(std::move(task));
}

}  // namespace skein
