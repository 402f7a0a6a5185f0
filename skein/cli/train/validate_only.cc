#include "skein/cli/train/validate_only.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/checkpoint/find/lineage.h"
#include "skein/checkpoint/format/stored_file.h"
#include "skein/cli/shared/command.h"
#include "skein/cli/shared/print.h"
#include "skein/config/run/checkpoints.h"
#include "skein/train/explain/run_past.h"

namespace skein {
namespace {

void check_can_validate(const Config& config, const std::optional<RankInfo>& launched) {
  if (config.data.validation.empty() && config.data.validation_set.empty()) {
    fail(ErrorCode::kUsage,
         "--validate-only: [data] validation is empty: expected a corpus to validate on, such as "
         "--set data.validation=held.arrow");
  }
  const bool has_ranks = launched && launched->size > 1;
  if (config.launch.nodes != "1" || has_ranks) {
    fail(ErrorCode::kUsage,
         "--validate-only runs on one machine, and {}: expected launch.nodes = \"1\" and no "
         "launcher; launch.workers starts the workers",
         has_ranks ? fmt::format("{} started {} ranks", launched->launcher, launched->size)
                   : fmt::format("launch.nodes is \"{}\"", config.launch.nodes));
  }
}

// What model.init_from is to name, and the lanes of the run that saved these weights.
struct Weights {
  std::string path;
  int64_t lanes = 0;  // 0: no run is continued
};

Weights weights_of(const Config& config) {
  const std::string own = checkpoint_dir(config), &resume = config.run.resume;
  if (resume == "never") return {config.model.init_from};
  if (const Lineage lineage = lineage_of(own); !lineage.checkpoints.empty()) {
    return {own, lanes_of(lineage.checkpoints)};
  }
  if (resume == "auto") return {config.model.init_from};
  const fs::path found = find_checkpoint(resume);
  const std::vector<CheckpointInfo> one = {{0, found}};
  return {resume, lanes_of(is_stored(found / "manifest.json")
                               ? one
                               : list_checkpoints(checkpoints_inside(found)))};
}

Config config_of_validation(Config config, const fs::path& run_dir) {
  const Weights weights = weights_of(config);
  config.model.init_from = weights.path;
  if (weights.lanes > 0) config.data.lanes = weights.lanes;
  const std::string accepted = config.run.accept_changes;
  config.run = {.dir = run_dir.string(), .seed = config.run.seed, .steps = 1};
  config.run.accept_changes = accepted;
  config.checkpoint = {.every_steps = 0, .memory_every_steps = 0};
  config.launch = {.workers = config.launch.workers,
                   .workers_per_process = config.launch.workers_per_process,
                   .collective_timeout_s = config.launch.collective_timeout_s,
                   .hang_timeout_s = config.launch.hang_timeout_s,
                   .max_restarts = 0,
                   .health_checks = false};
  config.log = {.tensorboard = false};
  config.validate = {.batches = config.validate.batches};
  config.evaluate.clear();
  return config;
}

fs::path make_place() {
  std::string name = (fs::temp_directory_path() / "skein-validate-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    fail(ErrorCode::kIo, "cannot make the folder {}: {}", name, errno_text(errno));
  }
  return name;
}

}  // namespace

ValidationPlace::ValidationPlace(const Config& config, const std::optional<RankInfo>& launched) {
  check_can_validate(config, launched);
  folder_ = make_place();
  try {
    config_ = config_of_validation(config, folder_ / "run");
    write_file_atomic(config_file(), config_text(config_));
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    throw;
  }
}

ValidationPlace::~ValidationPlace() {
  std::error_code ignored;
  if (!keeps_) fs::remove_all(folder_, ignored);
}

std::string ValidationPlace::config_file() const { return (folder_ / "config.toml").string(); }

void print_validated(const std::string& weights, std::span<const Validated> sets, bool json) {
  OrderedJson list = OrderedJson::array();
  for (const Validated& set : sets) {
    const auto loss = static_cast<float>(set.loss);  // as the event of a validation has it
    if (!json) {
      print_line(
          stdout,
          "validation loss{} {:.4f}, perplexity {:.4g}, {:.4f} bits per byte, over {}{} tokens "
          "of {} in {}{}",
          set.set.empty() ? "" : " of " + set.set, loss, std::exp(set.loss), set.bits_per_byte,
          set.is_all ? "" : "the first ", set.num_labels, set.path,
          counted(set.num_batches, "batch", "batches"),
          set.is_all ? "" : "; --set validate.batches=0 validates on all of it");
    }
    OrderedJson one = {{"path", set.path},
                       {"loss", loss},
                       {"perplexity", std::exp(set.loss)},
                       {"bits_per_byte", static_cast<float>(set.bits_per_byte)},
                       {"tokens", set.num_labels},
                       {"batches", set.num_batches},
                       {"all", set.is_all},
                       {"seconds", set.seconds}};
    if (!set.set.empty()) one["set"] = set.set;
    list.push_back(std::move(one));
  }
  if (json) print_json({{"weights", weights}, {"validation", std::move(list)}});
  flush_output();
}

}  // namespace skein
