#include "skein/train/start/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/checkpoint/find/checkpoint_folder.h"
#include "skein/checkpoint/find/run_lock.h"
#include "skein/checkpoint/format/file_ops.h"
#include "skein/config/fields.h"
#include "skein/objects/store.h"
#include "skein/optim/update.h"
#include "skein/train/start/run_copies.h"

namespace skein {
namespace {

constexpr std::string_view kConfigFile = "config.toml", kModelFile = "model.json";

std::string from_config_dir(std::string_view name) {
  return fmt::format("{}/{}", kConfigDir, name);
}

// How the config.toml of the run in `run` writes `path`.
std::string name_for(const std::string& path, const fs::path& run) {
  const fs::path full = absolute_path(path);
  if (!full.is_absolute()) return path;
  const fs::path inside = full.lexically_relative(run);
  if (inside == ".") return std::string(kConfigDir);
  if (inside.empty() || *inside.begin() == "..") return full.string();
  return from_config_dir(inside.string());
}

bool sets(std::span<const std::string> overrides, const std::string& key) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const std::string& text) { return text.starts_with(key + "="); });
}

bool names_a_model_file(const Config& config) {
  return !config.model.hf_config.empty() || !config.model.init_from.empty();
}

}  // namespace

Config config_of_run_folder(const Config& config) {
  const fs::path run = absolute_path(config.run.dir);
  Config placed = config;
  for (const ConfigPath& at : config_paths(placed)) {
    std::string& path = *at.path;
    const bool is_word = &path == &placed.run.resume && (path == "auto" || path == "never");
    if (!is_word) path = name_for(path, run);
  }
  placed.data.tokenizer = from_config_dir(kTokenizerFolder);
  if (names_a_model_file(config)) placed.model.hf_config = from_config_dir(kModelFile);
  placed.run.accept_changes.clear();  // applies to one start only
  return placed;
}

void write_run_folder(const Config& config, const DecoderConfig& model,
                      const Tokenizer& tokenizer) {
  const fs::path run = config.run.dir;
  make_folders(run);
  keep_tokenizer(config, tokenizer);
  if (!fs::exists(run / kConfigFile)) keep_generation_config(config);
  if (names_a_model_file(config)) {
    const DType dtype = compute_dtype(parse_precision(config.precision.mode));
    write_file_atomic(
        run / kModelFile,
        exact_json(to_hugging_face_json(model, dtype), std::string(kModelFile), 2) + "\n");
  }
  Config placed = config_of_run_folder(config);
  placed.model.init_std = model.initializer_range;  // what was drawn
  placed.origin.init_std_given = true;
  write_file_atomic(run / kConfigFile, config_text_as_written(placed));
}

void check_copies(const Config& config) {
  const fs::path run = config.run.dir;
  check_tokenizer_copy(run / kTokenizerFolder);
  if (fs::exists(run / kConfigFile)) return;
  for (const std::string_view file : {kModelFile, kGenerationConfig}) {
    if (!names_a_model_file(config) || !fs::exists(run / file)) continue;
    fail(ErrorCode::kUsage,
         "{} would be replaced by the run's own copy of its model: name another run.dir",
         (run / file).string());
  }
}

namespace {

// Of what lies in a store nothing is said: who reads it asks there.
bool is_gone(const fs::path& path) {
  std::error_code ignored;
  return !is_object_url(path) && fs::status(path, ignored).type() == fs::file_type::not_found;
}

// The option that names another path for a corpus: of a list all of it, since one of its tables
// cannot be set alone.
std::string option_with_path(Config& config, const std::string& key, std::string& setting) {
  if (key == "data.train" || key == "data.validation") return fmt::format("--set {}=PATH", key);
  setting = "PATH";
  for (const ConfigField& field : config_fields()) {
    if (fmt::format("{}.{}", field.section, field.key) != key) continue;
    return fmt::format("its path in [[{}]] of the configuration changed, or --set '{}={}'", key,
                       key, toml_value(field, config));
  }
  fail(ErrorCode::kInternal, "{} is no key", key);
}

// Finds a corpus of `config` that is gone in the folder `run` or beside it.
void find_corpus(Config& config, const std::string& key, const fs::path& run, std::string& setting,
                 std::vector<std::string>& said) {
  if (setting.empty() || !is_gone(setting)) return;
  const fs::path name = fs::path(setting).filename();
  const fs::path inside = (run / name).lexically_normal(),
                 beside = (run / ".." / name).lexically_normal();
  std::vector<std::string> others;  // than the place that was named
  for (const fs::path& found : {inside, beside}) {
    if (is_gone(found)) {
      if (absolute_path(found) != absolute_path(setting)) others.push_back(found.string());
      continue;
    }
    said.push_back(
        fmt::format("{} is '{}', which is gone: taking the file of that name {} the run, {}", key,
                    setting, found == inside ? "in" : "beside", found.string()));
    setting = found.string();
    return;
  }
  const std::string gone = setting;
  fail(ErrorCode::kUsage,
       "{} is '{}', which is gone, and there is {}: expected the corpus that the run began with in "
       "one of these places, or {}",
       key, gone,
       others.size() == 1 ? fmt::format("no {} either", others[0])
                          : fmt::format("neither {}", fmt::join(others, " nor ")),
       option_with_path(config, key, setting));
}

}  // namespace

std::vector<std::string> use_own_copies(Config& config, std::span<const std::string> overrides) {
  std::vector<std::string> said;
  const fs::path run = config.run.dir;
  const auto take = [&](std::string_view what, const std::string gone, std::string_view copy,
                        std::string& setting) {
    const fs::path own = run / copy;
    if (gone.empty() || !is_gone(gone) || !fs::exists(own)) return;
    setting = own.string();
    said.push_back(
        fmt::format("{} {} is gone: taking the run's own copy, {}", what, gone, setting));
  };
  if (!sets(overrides, "data.tokenizer")) {
    const bool is_named = !config.data.tokenizer.empty();
    take(is_named ? "the tokenizer" : "model.init_from, whose tokenizer was taken,",
         is_named ? config.data.tokenizer : config.model.init_from, kTokenizerFolder,
         config.data.tokenizer);
  }
  if (!sets(overrides, "model.hf_config") && !sets(overrides, "model.init_from")) {
    const ModelConfig& model = config.model;
    take("what describes the model,", model.hf_config.empty() ? model.init_from : model.hf_config,
         kModelFile, config.model.hf_config);
  }
  std::error_code ignored;  // of a folder that may not be read, which is refused later by name
  if (fs::exists(run / kConfigFile, ignored)) {
    for (const auto& [key, path] : config_paths(config)) {
      const bool is_corpus = key.starts_with("data.") && key != "data.tokenizer";
      if (is_corpus && !sets(overrides, key)) find_corpus(config, key, run, *path, said);
    }
  }
  return said;
}

std::string note_of_fork(const fs::path& config_file, std::span<const std::string> overrides,
                         const Config& config) {
  const fs::path folder = fs::path(absolute_path(config_file.string())).parent_path();
  std::error_code ignored;
  const bool is_new = config.run.resume == "auto" && config.model.init_from.empty() &&
                      !fs::exists(fs::path(config.run.dir) / kConfigFile, ignored);
  if (!is_new || config_file.filename() != kConfigFile || !sets(overrides, "run.dir") ||
      list_checkpoints(folder / "checkpoints").empty()) {
    return "";
  }
  return fmt::format(
      "{} begins from new weights, with the configuration of {}: --set run.resume={} would begin "
      "from that run's newest checkpoint",
      config.run.dir, folder.string(), folder.string());
}

void check_own_folder(const fs::path& config_file, std::span<const std::string> overrides,
                      const Config& config) {
  const fs::path folder = fs::path(absolute_path(config_file.string())).parent_path();
  const bool of_a_run =
      config_file.filename() == kConfigFile &&
      (fs::exists(folder / "metrics.jsonl") || fs::exists(folder / "checkpoints"));
  std::error_code ignored;
  if (!of_a_run || sets(overrides, "run.dir") || absolute_path(config.run.dir) == folder ||
      fs::equivalent(config.run.dir, folder, ignored)) {
    return;
  }
  fail(ErrorCode::kUsage,
       "{} lies in the folder of a run and names another: [run] dir is \"{}\". Was it moved? Write "
       "dir = \"{}\" there to continue the run beside it, or give --set run.dir=…",
       config_file.string(), config.run.dir, kConfigDir);
}

NewRunFolder::NewRunFolder(const Config& config) : run_(what_is_missing(config.run.dir)) {
  if (!is_object_url(checkpoint_dir(config))) {
    checkpoints_ = what_is_missing(checkpoint_dir(config));
  }
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run_.folder, ignored)) {
    former_.insert(entry.path().filename().string());
  }
}

bool NewRunFolder::has_begun() const { return fs::exists(run_.folder / kConfigFile); }

NewRunFolder::Made NewRunFolder::what_is_missing(const std::string& folder) {
  Made made;
  made.folder = absolute_path(folder);
  std::error_code ignored;
  for (fs::path at = made.folder; at.has_relative_path() && !fs::exists(at, ignored);
       at = at.parent_path()) {
    made.parents.push_back(at);
  }
  return made;
}

NewRunFolder::~NewRunFolder() {
  try {
    remove_what_was_made();
  } catch (const std::exception& problem) {  // another process uses it, or it holds other files
    log::debug("{} is left: {}", run_.folder.string(), problem.what());
  }
}

// Removes the folders, innermost first, up to the first that is not empty.
void NewRunFolder::remove_empty(const Made& made) {
  std::error_code error;
  for (const fs::path& folder : made.parents) {
    if (!fs::remove(folder, error) && error) return;
  }
}

// Takes the lock first: another run may share the folder of checkpoints and be training already.
void NewRunFolder::remove_checkpoint_folder() const {
  if (checkpoints_.parents.empty() || !fs::is_directory(checkpoints_.folder)) return;
  std::error_code ignored;
  if (fs::equivalent(checkpoints_.folder, run_.folder, ignored)) return;
  try {
    const RunLock lock(checkpoints_.folder, {.names_holder = false});
    if (!list_checkpoints(checkpoints_.folder).empty()) return;
    for (const std::string_view own : {std::string_view(".lock"), kGenerationConfig}) {
      FileOps().remove_tree(checkpoints_.folder / own);
    }
  } catch (const Error&) {
    return;  // another run trains there
  }
  remove_empty(checkpoints_);
}

void NewRunFolder::remove_what_was_made() const {
  if (!fs::is_directory(run_.folder) || has_begun()) return;
  const RunLock lock(run_.folder, {.names_holder = false});
  if (has_begun()) return;
  remove_checkpoint_folder();
  const FileOps ops;
  constexpr std::array<std::string_view, 12> kOurs = {"logs",
                                                      "events.jsonl",
                                                      "metrics.jsonl",
                                                      "tensorboard",
                                                      "rendezvous",
                                                      "tokenizer",
                                                      "tokenizer.partial",
                                                      "model.json",
                                                      "generation_config.json",
                                                      ".lock",
                                                      "config.toml.partial",
                                                      ".events_told"};
  for (const std::string_view name : kOurs) {
    const bool tells = name == "logs" || name == "events.jsonl" || name == "rendezvous";
    if (former_.contains(std::string(name)) || (keep_logs_ && tells)) continue;
    ops.remove_tree(run_.folder / name);
  }
  remove_empty(run_);
}

}  // namespace skein
