#include "skein/config/run/identity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/text/log.h"
#include "skein/config/fields.h"
#include "skein/config/parameter_rules.h"
#include "skein/config/run/change_text.h"
#include "skein/model/decoder.h"
#include "skein/ops/optimizer.h"

namespace skein {
namespace {

struct Misfit {
  std::string first;  // "tensor 'x' is f32[4], this configuration needs bf16[4]"
  int64_t count = 0;
};

Misfit misfit_of_tensors(const Manifest& manifest, std::span<const NeededTensor> needed) {
  Misfit misfit;
  const auto add = [&](std::string text) {
    if (misfit.count++ == 0) misfit.first = std::move(text);
  };
  std::unordered_map<std::string_view, const ManifestTensor*> stored;
  for (const ManifestTensor& tensor : manifest.tensors) stored[tensor.name] = &tensor;
  for (const NeededTensor& tensor : needed) {
    const auto found = stored.find(tensor.name);
    if (found == stored.end()) {
      add(fmt::format("it has no tensor '{}', which this configuration needs", tensor.name));
      continue;
    }
    if (!(found->second->shape == tensor.shape) || found->second->dtype != tensor.dtype) {
      add(fmt::format("its tensor '{}' is {}{}, this configuration needs {}{}", tensor.name,
                      dtype_name(found->second->dtype), found->second->shape.to_string(),
                      dtype_name(tensor.dtype), tensor.shape.to_string()));
    }
    stored.erase(found);
  }
  for (const ManifestTensor& tensor : manifest.tensors) {  // in the order of the manifest
    if (!stored.contains(tensor.name)) continue;
    add(fmt::format("its tensor '{}' has no place in this configuration", tensor.name));
  }
  return misfit;
}

constexpr std::string_view kResumeOtherwise =
    "To continue, give it what it was trained with; to begin a new run with its weights, name "
    "another run.dir and set model.init_from";

// What to do about such changes. Weights do not fit a model of other shapes.
std::string_view way_out(std::span<const Change> changes) {
  const bool other_shapes = std::any_of(changes.begin(), changes.end(), [](const Change& change) {
    return change.kind == ChangeKind::kImpossible && change.key.starts_with("model.");
  });
  return other_shapes ? "To continue, give it what it was trained with; such a model is a new run, "
                        "with weights of its own: name another run.dir"
                      : kResumeOtherwise;
}

// The copy that the run of a checkpoint keeps, where the tokenizer is another now.
std::string tokenizer_advice(const fs::path& checkpoint, std::span<const Change> changes) {
  const bool is_other = std::any_of(changes.begin(), changes.end(), [](const Change& change) {
    return change.key == "data.tokenizer";
  });
  const fs::path copy = checkpoint.parent_path().parent_path() / "tokenizer";
  std::error_code error;
  if (!is_other || !fs::is_directory(copy, error)) return "";
  return fmt::format(" (its own copy of the tokenizer: data.tokenizer = \"{}\")", copy.string());
}

// Throws where tensors are missing, differ or are superfluous; names the changes that caused it.
void refuse_misfit(const CheckpointReader& checkpoint, std::span<const NeededTensor> needed,
                   std::span<const Change> changes) {
  const Misfit misfit = misfit_of_tensors(checkpoint.manifest(), needed);
  if (misfit.count == 0) return;
  std::vector<Change> causes;
  for (const Change& change : changes) {
    const bool of_state = change.key.starts_with("model.") ||
                          change.key.starts_with("precision.") || change.key == "optimizer.name";
    if (of_state && change.kind != ChangeKind::kSetting) causes.push_back(change);
  }
  const std::string others =
      misfit.count == 1 ? "" : fmt::format(", and {} more like it", misfit.count - 1);
  fail(ErrorCode::kUsage, "{} does not fit this configuration: {}{}{}. {}",
       checkpoint.path().string(), causes.empty() ? "" : there_and_here(causes) + ": ",
       misfit.first, others, way_out(causes));
}

}  // namespace

Json run_configuration(const Config& config, const DecoderConfig& model,
                       const RunContent& content) {
  Config placed = config;  // with absolute paths, which do not depend on the working directory
  for (const auto& [key, path] : config_paths(placed)) {
    const bool is_word = path == &placed.run.resume && (*path == "auto" || *path == "never");
    if (!is_word) *path = absolute_path(*path);
  }
  placed.model.init_std = model.initializer_range;  // what was drawn
  placed.origin.init_std_given = true;
  Json json = Json::object();
  json["config"] = config_text(placed);
  json["model"] =
      to_hugging_face_json(model, compute_dtype(parse_precision(config.precision.mode)));
  json["tokenizer"] = placed.data.tokenizer;
  json["content"] = {{"tokenizer", {{"tokens", content.tokens}, {"xxh3_128", content.tokenizer}}},
                     {"train", content.train ? to_json(*content.train) : Json()},
                     {"validation", content.validation ? to_json(*content.validation) : Json()}};
  for (const RunContent::Source& source : content.sources) {
    Json of_source = to_json(source.text);
    of_source["name"] = source.name;
    of_source["weight"] = source.weight;
    json["content"]["sources"].push_back(std::move(of_source));
  }
  return json;
}

std::vector<NeededTensor> needed_tensors(const DecoderConfig& model, const Config& config) {
  const Precision mode = parse_precision(config.precision.mode);
  const DType moments = moments_dtype(config.precision);
  std::vector<NeededTensor> needed;
  for (const ParameterSpec& spec : parameter_specs(model)) {
    needed.push_back({spec.name, compute_dtype(mode), spec.shape});
    const auto needs = [&](const StateRow& row) {
      needed.push_back(
          {state_name(row, spec.name), row.is_moment ? moments : DType::kF32, spec.shape});
    };
    for (const StateRow& row : parameter_rule(config.optimizer, spec).optimizer->state) needs(row);
    if (mode == Precision::kMixed) needs(kMasterRow);
  }
  return needed;
}

std::vector<Change> accept_checkpoint(const CheckpointReader& checkpoint, const Json& now,
                                      std::span<const NeededTensor> needed, const RunConfig& run) {
  const TrainingState& state = checkpoint.state();
  const std::string path = checkpoint.path().string();
  if (state.seed != static_cast<uint64_t>(run.seed)) {
    fail(ErrorCode::kUsage,
         "{} does not fit this configuration: run.seed is {} there and {} in the configuration. {}",
         path, state.seed, run.seed, kResumeOtherwise);
  }
  Comparison comparison = compare_configurations(state.configuration, now, path + "/manifest.json");
  refuse_misfit(checkpoint, needed, comparison.changes);
  refuse_changes(comparison.changes, run.accept_changes, path,
                 std::string(way_out(comparison.changes)) +
                     tokenizer_advice(checkpoint.path(), comparison.changes));
  if (!comparison.not_compared.empty()) {
    log::info(
        "{} was saved by an older skein and does not say what this run could be compared "
        "with: {}; taken for the same",
        path, fmt::join(comparison.not_compared, ", "));
  }
  return comparison.changes;
}

void refuse_changes(std::span<const Change> changes, const std::string& accepted,
                    const std::string& before, std::string_view and_then) {
  const std::vector<std::string> allowed = parse_accepted_changes(accepted);
  std::vector<Change> refused, impossible;
  std::vector<std::string> keys = allowed;
  for (const Change& change : changes) {
    const bool is_allowed = std::find(allowed.begin(), allowed.end(), change.key) != allowed.end();
    if (change.kind == ChangeKind::kImpossible) impossible.push_back(change);
    if (change.kind != ChangeKind::kMeaning || is_allowed) continue;
    refused.push_back(change);
    keys.push_back(change.key);
  }
  if (!impossible.empty()) {
    fail(ErrorCode::kUsage, "{} does not fit this configuration: {}. {}", before,
         there_and_here(impossible), and_then);
  }
  if (refused.empty()) return;
  fail(ErrorCode::kUsage,
       "{} was trained otherwise: {}. {}; to change it on purpose, set run.accept_changes = \"{}\"",
       before, there_and_here(refused), and_then, fmt::join(keys, ", "));
}

std::string there_and_here(std::span<const Change> changes) {
  std::vector<std::string> parts;
  for (const Change& change : changes) {
    const std::string sources = different_sources(change.before, change.after);
    parts.push_back(sources.empty() ? fmt::format("{} is {} there and {} in the configuration",
                                                  change.key, change.before, change.after)
                                    : fmt::format("{} differs: {}", change.key, sources));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string decay_that_has_ended(const Config& config, std::span<const Change> changes,
                                 int64_t step) {
  const OptimizerConfig& optimizer = config.optimizer;
  const bool is_of_schedule = std::any_of(changes.begin(), changes.end(), [](const Change& change) {
    return change.key == "run.steps" || change.key.starts_with("optimizer.");
  });
  const int64_t peak_ends = optimizer.warmup_steps + optimizer.constant_steps;
  const int64_t end = peak_ends + optimizer.decay_steps;
  if (!is_of_schedule || optimizer.schedule == "constant" || step <= end) return "";
  return fmt::format(
      "the learning rate had decayed to optimizer.min_learning_rate = {:g} by step {}, and stays "
      "there to the end, step {}, whatever optimizer.learning_rate is; --set "
      "optimizer.decay_steps={} has it decay to the end",
      optimizer.min_learning_rate, end, config.run.steps, config.run.steps - peak_ends);
}

std::string schedule_that_follows(const Config& config, std::span<const Change> changes,
                                  int64_t step) {
  OptimizerConfig before = config.optimizer;
  std::vector<std::string> kept;
  const auto keep = [&](const Change& change, const char* key, bool is_given, int64_t& value) {
    if (change.key != key || is_given) return;
    std::from_chars(change.before.data(), change.before.data() + change.before.size(), value);
    kept.push_back(fmt::format("--set {}={}", key, value));
  };
  std::string rate;  // it changed as well, and was set by the user
  for (const Change& change : changes) {
    keep(change, "optimizer.warmup_steps", config.origin.warmup_given, before.warmup_steps);
    keep(change, "optimizer.decay_steps", config.origin.decay_given, before.decay_steps);
    if (change.key != "optimizer.learning_rate") continue;
    std::from_chars(change.before.data(), change.before.data() + change.before.size(),
                    before.learning_rate);
    rate = fmt::format(", and optimizer.learning_rate was {}", change.before);
  }
  if (kept.empty()) return "";
  const float now = learning_rate_schedule(config.optimizer).at(step),
              was = learning_rate_schedule(before).at(step);
  if (now == was) return "";
  const auto text = [](float rate, int digits) { return fmt::format("{:.{}g}", rate, digits); };
  const int digits = text(now, 3) == text(was, 3) ? 9 : 3;  // enough to see that they differ
  return fmt::format(
      "the learning rate of step {} is {} and was to be {}: its schedule follows from run.steps, "
      "which is {} now{}; {} keeps the earlier schedule{}",
      step, text(now, digits), text(was, digits), config.run.steps, rate, fmt::join(kept, " "),
      rate.empty() ? "" : " with the new rate");
}

std::string changes_text(std::span<const Change> changes) {
  std::vector<std::string> parts;
  for (const Change& change : changes) {
    parts.push_back(fmt::format("{} {} → {}", change.key, change.before, change.after));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

OrderedJson changes_to_json(std::span<const Change> changes) {
  OrderedJson json = OrderedJson::array();
  for (const Change& change : changes) {
    json.push_back({{"key", change.key}, {"before", change.before}, {"after", change.after}});
  }
  return json;
}

}  // namespace skein
