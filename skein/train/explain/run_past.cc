#include "skein/train/explain/run_past.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "skein/base/text/log.h"
#include "skein/checkpoint/find/newest_good.h"
#include "skein/config/run/change_text.h"
#include "skein/train/explain/undo_change.h"

namespace skein {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

bool matters(const std::string& key, Asked asked) {
  const auto known = acceptable_changes();
  const bool has_meaning = std::find(known.begin(), known.end(), key) != known.end();
  constexpr std::array<std::string_view, 5> kOfWeights = {"optimizer.", "precision.", "batch.",
                                                          "model.init_", "model.scaled_init"};
  const bool is_of_batches = key == "batch.global_sequences" || key == "batch.ramp";
  switch (asked) {
    case Asked::kTokens:
      return is_of_batches || (has_meaning && key.starts_with("data."));
    case Asked::kEffects:
      return is_of_batches || has_meaning;
    case Asked::kReplay:
      return has_meaning ||
             std::any_of(kOfWeights.begin(), kOfWeights.end(),
                         [&](std::string_view prefix) { return key.starts_with(prefix); });
  }
  return false;
}

// The checkpoint elsewhere from which the run began; "": it began from initial weights.
std::string origin_of(const Lineage& lineage) {
  std::vector<Timeline> timelines = lineage.ancestors;
  timelines.insert(timelines.begin(), lineage.timeline);
  for (const Timeline& timeline : timelines) {
    if (timeline.parent && fs::path(timeline.parent->path).is_absolute()) {
      return timeline.parent->path;
    }
  }
  return "";
}

Config without_validation(Config config) {
  config.data.validation.clear();
  config.data.validation_set.clear();
  return config;
}

}  // namespace

OpenedRun::OpenedRun(const Config& of, int64_t lanes)
    : config(without_validation(of)), inputs(config, false) {
  inputs.open_corpora({}, lanes);
  identity = run_configuration(config, inputs.model(), inputs.content());
}

RunPast::RunPast(const Config& now)
    : starts_(recorded_starts(now.run.dir)),
      lineage_(lineage_patiently(checkpoint_dir(now))),
      lanes_(lanes_of(lineage_.checkpoints)),
      now_(std::make_shared<OpenedRun>(now, lanes_)) {
  if (lineage_.conflict) throw *lineage_.conflict;
  if (starts_.empty()) {
    starts_.emplace_back();
  } else {
    leave_out_others();
  }
  find_reference();
  add_change_by_hand();
}

int64_t lanes_of(std::span<const CheckpointInfo> checkpoints) {
  for (const CheckpointInfo& info : checkpoints) {
    auto reader = try_run([&] { return std::make_unique<CheckpointReader>(info.path); });
    if (reader.ok()) return num_lanes_in(reader.value()->state().lanes);
  }
  return 0;
}

bool RunPast::is_of(const Config& config) {
  return fs::exists(fs::path(config.run.dir) / "events.jsonl") ||
         !list_checkpoints(checkpoint_dir(config)).empty();
}

// Until a run that went back has saved a step again, the newest timeline is the one that it left.
void RunPast::leave_out_others() {
  std::erase_if(lineage_.checkpoints, [this](const CheckpointInfo& info) {
    const std::vector<int64_t>& saved = starts_[start_of(info.step)].saved;
    return std::find(saved.begin(), saved.end(), info.step) == saved.end();
  });
}

int64_t RunPast::newest_checkpoint() const {
  return lineage_.checkpoints.empty() ? 0 : lineage_.checkpoints.front().step;
}

std::unique_ptr<CheckpointReader> RunPast::checkpoint_before(int64_t step, bool whole) const {
  Lineage before = lineage_;
  std::erase_if(before.checkpoints, [&](const CheckpointInfo& info) { return info.step > step; });
  const auto pass_over = [](const CheckpointInfo& info, const Error& why) {
    log::warn("passing over the checkpoint {}: {}", info.path.string(), why.what());
  };
  if (whole) {
    const auto found = find_newest_good(before, pass_over);
    if (found) return std::make_unique<CheckpointReader>(found->path);
  } else {
    for (const CheckpointInfo& info : before.checkpoints) {
      auto reader = try_run([&] { return std::make_unique<CheckpointReader>(info.path); });
      if (reader.ok()) return std::move(reader).value();
      if (is_read_error(reader.error())) throw reader.error();
      pass_over(info, reader.error());
    }
  }
  // A run that has saved nothing so far names its origin in its events alone.
  std::string origin = origin_of(lineage_);
  if (lineage_.checkpoints.empty() && starts_.front().step > 0) origin = starts_.front().from;
  if (origin.empty()) return nullptr;
  auto reader = std::make_unique<CheckpointReader>(origin);
  if (reader->state().step <= step) return reader;
  fail(ErrorCode::kUsage, "step {} came before this run, which began from step {} of {}", step + 1,
       reader->state().step, origin);
}

int64_t RunPast::last_step(size_t start) const {
  return start + 1 < starts_.size() ? starts_[start + 1].step : kNever;
}

// The newest checkpoint, else the run's own copy of its configuration.
void RunPast::find_reference() {
  for (const CheckpointInfo& info : lineage_.checkpoints) {
    auto reader = try_run([&] { return std::make_unique<CheckpointReader>(info.path); });
    if (!reader.ok()) {
      if (is_read_error(reader.error())) throw reader.error();
      continue;  // checkpoint_before says so
    }
    const TrainingState& state = reader.value()->state();
    reference_ = {state.configuration, info.path.string() + "/manifest.json", std::nullopt};
    if (state.step > starts_.front().step) reference_.start = start_of(state.step);
    return;
  }
  const fs::path own = fs::path(now_->config.run.dir) / "config.toml";
  reference_ = {now_->identity, own.string(), starts_.size() - 1};
  if (!fs::exists(own)) return;
  const Config config = load_config(own.string());
  if (config.data != now_->config.data)
    reference_.configuration = OpenedRun(config, lanes_).identity;
}

std::vector<Config> RunPast::saved_configurations() const {
  std::vector<Config> saved;
  for (const CheckpointInfo& info : lineage_.checkpoints) {
    auto reader = try_run([&] { return std::make_unique<CheckpointReader>(info.path); });
    if (!reader.ok()) continue;
    const Json& configuration = reader.value()->state().configuration;
    const auto text = configuration.find("config");
    if (text == configuration.end() || !text->is_string()) continue;
    saved.push_back(parse_config(text->get_ref<const std::string&>(), info.path.string()));
  }
  return saved;
}

void RunPast::add_change_by_hand() {
  const Net net = net_of(*now_);
  std::set<std::string> keys;
  for (const auto& [key, change] : net) keys.insert(key);
  for (const Later& later : later_changes(reference_.start, Asked::kReplay)) {
    keys.insert(later.change.key);
  }
  std::vector<RecordedChange> changes;
  std::vector<Change> impossible;
  for (const std::string& key : keys) {
    const auto differs = net.find(key);
    const auto recorded = value_at(starts_.size() - 1, key);
    if (!recorded && differs->second.kind == ChangeKind::kImpossible) {
      impossible.push_back(differs->second);
    }
    if (!matters(key, Asked::kReplay)) continue;
    const std::string before = recorded ? *recorded : differs->second.before;
    const std::string after = value_in(net, key);
    if (!same_value(before, after)) changes.push_back({key, before, after});
  }
  if (!impossible.empty()) {
    fail(ErrorCode::kUsage,
         "{} does not fit this configuration: {}. Name the folder of the run in place of a "
         "configuration; or for a new run of it set run.dir to a folder that is not there",
         fs::path(reference_.name).parent_path().string(), there_and_here(impossible));
  }
  if (!changes.empty()) starts_.push_back({.step = kNever, .changes = std::move(changes)});
}

RunPast::Net RunPast::net_of(const OpenedRun& opened) const {
  Net net;
  for (Change& change :
       compare_configurations(reference_.configuration, opened.identity, reference_.name).changes) {
    net[change.key] = std::move(change);
  }
  return net;
}

std::vector<RunPast::Later> RunPast::later_changes(std::optional<size_t> start, Asked asked) const {
  std::vector<Later> later;
  for (size_t i = start ? *start + 1 : 0; i < starts_.size(); ++i) {
    for (const RecordedChange& change : starts_[i].changes) {
      const bool is_known = std::any_of(later.begin(), later.end(), [&](const Later& one) {
        return one.change.key == change.key;
      });
      if (!is_known && matters(change.key, asked)) later.push_back({starts_[i].step, change});
    }
  }
  return later;
}

std::optional<std::string> RunPast::value_at(std::optional<size_t> start,
                                             const std::string& key) const {
  std::optional<std::string> value;
  const size_t first_later = start ? *start + 1 : 0;
  for (size_t i = 0; i < starts_.size(); ++i) {
    for (const RecordedChange& change : starts_[i].changes) {
      if (change.key != key) continue;
      if (i >= first_later) return change.before;
      value = change.after;
    }
  }
  return value;
}

std::string RunPast::value_in(const Net& net, const std::string& key) const {
  const auto differs = net.find(key);
  if (differs != net.end()) return differs->second.after;
  return value_at(reference_.start, key).value_or("");
}

void RunPast::refuse(const Later& later, const std::string& why) const {
  const auto& [step, change] = later;
  const bool by_hand = step == kNever;
  fail(ErrorCode::kUsage,
       "{}: {} was {} until {} and is {} since, and what it was cannot be had any more: {}. "
       "Expected {}",
       now_->config.run.dir, change.key, change.before,
       by_hand ? "the newest step" : fmt::format("step {}", step), change.after, why,
       by_hand ? "the configuration that the run was trained with: name its folder"
               : fmt::format("a step from {} on, or that back in its place", step + 1));
}

std::shared_ptr<const OpenedRun> RunPast::opened(size_t start, Asked asked) const {
  const std::vector<Later> later = later_changes(start, asked);
  if (later.empty()) return now_;
  Config config = now_->config;
  const bool of_corpora = std::any_of(
      later.begin(), later.end(), [](const Later& one) { return one.change.key == "data.source"; });
  const auto saved = of_corpora ? saved_configurations() : std::vector<Config>();
  for (const Later& one : later) {
    auto set = try_run([&] {
      set_recorded_value(config, one.change.key, one.change.before, saved);
      return true;
    });
    if (!set.ok()) refuse(one, set.error().what());
  }
  auto made = try_run([&] { return std::make_shared<const OpenedRun>(config, lanes_); });
  if (!made.ok()) {
    const std::string why = made.error().what();
    const auto named = std::find_if(later.begin(), later.end(), [&](const Later& one) {
      return why.find(one.change.key) != why.npos;
    });
    refuse(named == later.end() ? later.front() : *named, why);
  }
  const Net net = net_of(*made.value());
  for (const Later& one : later) {
    const std::string found = value_in(net, one.change.key);
    if (!same_value(found, one.change.before)) refuse(one, fmt::format("found {}", found));
  }
  return made.value();
}

const RecordedChange* RunPast::change_within(size_t first, size_t last, Asked asked) const {
  for (size_t i = first; i <= last; ++i) {
    for (const RecordedChange& change : starts_[i].changes) {
      if (matters(change.key, asked)) return &change;
    }
  }
  return nullptr;
}

std::string RunPast::differences(size_t start, Asked asked) const {
  std::vector<std::string> parts;
  for (const auto& [step, change] : later_changes(start, asked)) {
    std::string before = brief_value(change.before), after = brief_value(change.after);
    if (before == after) {  // the texts differ
      before = change.before;
      after = change.after;
    }
    parts.push_back(fmt::format("{} {}, {} {}", change.key, before,
                                step == kNever
                                    ? "in the configuration at hand"
                                    : fmt::format("which changed after step {} to", step),
                                after));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace skein
