#include "skein/record/report/html/explained_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/record/files/event_fields.h"

namespace skein {
namespace {

constexpr size_t kMostFiles = 200, kMostDocuments = 10;
constexpr int64_t kMostBytes = int64_t{16} << 20;

// The values of these keys that are no objects or lists; others are null.
OrderedJson plain_values(const Json& json, std::initializer_list<const char*> keys) {
  OrderedJson plain = OrderedJson::object();
  for (const char* key : keys) {
    const auto found = json.find(key);
    plain[key] = found != json.end() && found->is_primitive() ? OrderedJson(*found) : nullptr;
  }
  return plain;
}

OrderedJson read_answer(const fs::path& path) {
  const Json json = parse_json(read_file(path, kMostBytes), path.string());
  const auto documents = json.is_object() ? json.find("documents") : json.end();
  if (documents == json.end() || !documents->is_array() || integer_or(json, "step", -1) < 0) {
    fail(ErrorCode::kInvalid, "{}: expected what skein why --save writes, with step and documents",
         path.string());
  }
  OrderedJson answer = plain_values(
      json, {"step", "batch", "skipped", "exact", "weights_step", "loss", "num_documents"});
  answer["documents"] = OrderedJson::array();
  for (const Json& document : *documents) {
    if (!document.is_object() || answer["documents"].size() == kMostDocuments) break;
    answer["documents"].push_back(
        plain_values(document, {"corpus", "document", "source", "record", "tokens", "loss",
                                "grad_norm", "loss_share", "text"}));
  }
  return answer;
}

}  // namespace

std::vector<OrderedJson> explained_steps(const fs::path& run_dir, std::vector<std::string>& notes) {
  std::vector<fs::path> files;
  std::error_code error;
  const fs::path folder = run_dir / "why";
  fs::directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".json") files.push_back(entry->path());
  }
  if (error && fs::exists(folder)) notes.push_back(folder.string() + ": " + error.message());
  std::sort(files.begin(), files.end());
  if (files.size() > kMostFiles) {
    notes.push_back(fmt::format("{} holds {} files: the first {} by name are shown",
                                folder.string(), files.size(), kMostFiles));
    files.resize(kMostFiles);
  }
  std::vector<OrderedJson> answers;
  for (const fs::path& file : files) {
    Result<OrderedJson> answer = try_run([&] { return read_answer(file); });
    if (answer.ok()) {
      answers.push_back(std::move(answer.value()));
    } else {
      notes.push_back(answer.error().what() + std::string("; the file is left out"));
    }
  }
  std::stable_sort(answers.begin(), answers.end(), [](const OrderedJson& a, const OrderedJson& b) {
    return a["step"].get<int64_t>() < b["step"].get<int64_t>();
  });
  return answers;
}

}  // namespace skein
