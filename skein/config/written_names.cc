#include "skein/config/written_names.h"

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/text/visible_text.h"
#include "skein/config/fields.h"

namespace skein {

void check_utf8(Config& config, const std::string& file) {
  const auto refuse = [&](const std::string& key, const std::string& text, const std::string& why) {
    fail(ErrorCode::kUsage, "{}: {} is '{}', {}", file, key, visible_line(text), why);
  };
  const auto check = [&](const std::string& key, const std::string& text, bool is_path) {
    if (!is_valid_utf8(text)) {
      refuse(key, text,
             is_path ? "which is not UTF-8, and what a run writes down of its paths is: rename the "
                       "file or folder (mv OLD NEW)"
                     : "which is not UTF-8: write it so");
    }
    if (!is_path || is_valid_utf8(absolute_path(text))) return;
    refuse(key, text,
           fmt::format("counted from the working folder {}, which is not UTF-8, and what a run "
                       "writes down of its paths is: rename that folder, or start from another one",
                       visible_line(fs::current_path().native())));
  };
  for (const ConfigField& field : config_fields()) {
    const std::string key = fmt::format("{}.{}", field.section, field.key);
    const ConfigValue value = field.value(config);
    const auto* text = std::get_if<std::string*>(&value);
    const bool is_word = key == "run.resume" && (**text == "auto" || **text == "never");
    if (text != nullptr && !(*text)->empty()) check(key, **text, field.limits.is_path && !is_word);
    const auto* sources = std::get_if<std::vector<DataSource>*>(&value);
    if (sources == nullptr) continue;
    for (const DataSource& source : **sources) {
      check(key + ", a path", source.path, true);
      check(key + ", a name", source.name, false);
    }
  }
  for (const EvaluateConfig& evaluation : config.evaluate) {
    check("evaluate.tasks", evaluation.tasks, false);
    check("evaluate.data", evaluation.data, !evaluation.data.empty());
    check("evaluate.include_path", evaluation.include_path, !evaluation.include_path.empty());
  }
}

}  // namespace skein
