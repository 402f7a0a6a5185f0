#include "skein/config/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/text/nearest.h"
#include "skein/config/fields.h"
#include "skein/config/node_range.h"
#include "skein/ops/optimizer.h"

namespace skein {
namespace {

// "\"muon\"", with commas between.
std::string optimizers_with_momentum() {
  std::vector<std::string> names;
  for (const Optimizer* optimizer : all_optimizers()) {
    if (optimizer->has_momentum) names.push_back(fmt::format("\"{}\"", optimizer->name));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Those that are set, and that a device which compiles no programs does not read.
std::vector<std::string> keys_of_compilers_alone(const DeviceConfig& device) {
  if (device.kind == "pjrt") return {};
  const DeviceConfig defaults;
  std::vector<std::string> keys;
  const auto add = [&](const char* key, auto member) {
    if (device.*member != defaults.*member) keys.emplace_back(key);
  };
  add("pjrt_plugin", &DeviceConfig::pjrt_plugin);
  add("compile_cache", &DeviceConfig::compile_cache);
  add("compile_cache_gb", &DeviceConfig::compile_cache_gb);
  add("compile_timeout_s", &DeviceConfig::compile_timeout_s);
  add("optimization_level", &DeviceConfig::optimization_level);
  add("executions_in_flight", &DeviceConfig::executions_in_flight);
  return keys;
}

}  // namespace

std::vector<std::string> settings_without_effect(const Config& config, int64_t done,
                                                 bool is_supervised) {
  const LaunchConfig defaults;
  std::vector<std::string> notes;
  if (config.run.max_roll_backs != RunConfig().max_roll_backs &&
      config.run.on_divergence == "stop") {
    notes.push_back(
        fmt::format("run.max_roll_backs = {} has no effect: run.on_divergence is \"stop\"",
                    config.run.max_roll_backs));
  }
  const OptimizerConfig& optimizer = config.optimizer;
  if (config.origin.floor_given && optimizer.schedule != "constant" &&
      optimizer.min_learning_rate_ratio != OptimizerConfig().min_learning_rate_ratio) {
    notes.push_back(fmt::format(
        "optimizer.min_learning_rate_ratio = {} has no effect: min_learning_rate is set, to {}",
        optimizer.min_learning_rate_ratio, optimizer.min_learning_rate));
  }
  if (optimizer.momentum != OptimizerConfig().momentum &&
      !find_optimizer(optimizer.name).has_momentum) {
    notes.push_back(
        fmt::format("optimizer.momentum = {} has no effect: optimizer.name is \"{}\", not {}",
                    optimizer.momentum, optimizer.name, optimizers_with_momentum()));
  }
  if (config.precision.fast_accumulation && config.precision.mode != "fp8") {
    notes.push_back(fmt::format(
        "precision.fast_accumulation = true has no effect: precision.mode is \"{}\", not \"fp8\"",
        config.precision.mode));
  }
  if (!config.precision.repeatable && config.device.kind == "cpu") {
    notes.push_back(
        "precision.repeatable = false has no effect: device.kind is \"cpu\", whose sums have one "
        "order");
  }
  if (config.device.kind == "pjrt" && config.memory.offload_activations) {
    notes.push_back(
        "memory.offload_activations = true has no effect: device.kind is \"pjrt\", whose compiler "
        "places arrays");
  }
  if (config.device.kind == "pjrt" && config.log.trace_step > 0) {
    notes.push_back(
        "log.trace_step has no effect: device.kind is \"pjrt\", which runs programs as a whole");
  }
  if (config.checkpoint.memory_every_steps > 0 && workers_per_process(config) > 1) {
    notes.push_back(
        fmt::format("checkpoint.memory_every_steps has no effect: {} workers share a process "
                    "(launch.workers_per_process), which keeps no copies",
                    workers_per_process(config)));
  }
  for (const std::string& key : keys_of_compilers_alone(config.device)) {
    notes.push_back(
        fmt::format("device.{} has no effect: device.kind is \"{}\"", key, config.device.kind));
  }
  if (config.memory.keep_fp8_weights && config.precision.mode == "fp8" &&
      config.parallel.zero >= 3) {
    notes.push_back(
        "memory.keep_fp8_weights = true has no effect: with parallel.zero = 3 weights are gathered "
        "a layer at a time, and every product rounds them");
  }
  if (!config.memory.keep_fp8_weights && config.precision.mode != "fp8") {
    notes.push_back(fmt::format(
        "memory.keep_fp8_weights = false has no effect: precision.mode is \"{}\", not \"fp8\"",
        config.precision.mode));
  }
  if (config.log.trace_step > config.run.steps) {
    notes.push_back(fmt::format("log.trace_step = {} has no effect: run.steps is {}",
                                config.log.trace_step, config.run.steps));
  } else if (config.log.trace_step > 0 && config.log.trace_step <= done) {
    notes.push_back(fmt::format("log.trace_step = {} has no effect: the run continues from step {}",
                                config.log.trace_step, done));
  }
  if (is_supervised) return notes;
  if (config.launch.supervise) {
    notes.push_back(
        "launch.supervise = true has no effect: a launcher started this worker, and starts it "
        "again or not");
  }
  if (config.launch.hang_timeout_s != defaults.hang_timeout_s) {
    notes.push_back(
        fmt::format("launch.hang_timeout_s = {} has no effect: `skein train` watches the workers "
                    "that it started itself, and there are none",
                    config.launch.hang_timeout_s));
  }
  if (config.launch.max_restarts != defaults.max_restarts) {
    notes.push_back(
        fmt::format("launch.max_restarts = {} has no effect: `skein train` restarts the workers "
                    "that it started itself, and there are none",
                    config.launch.max_restarts));
  }
  if (config.checkpoint.memory_every_steps > 0) {
    notes.push_back(
        fmt::format("checkpoint.memory_every_steps = {} has no effect: a supervisor keeps the "
                    "copies (launch.workers, launch.nodes or launch.supervise), and there is none",
                    config.checkpoint.memory_every_steps));
  }
  return notes;
}

std::vector<std::string> keys_meant_by(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  std::vector<std::string> exact, full_names;
  std::vector<std::string_view> keys;
  for (const ConfigField& field : config_fields()) {
    const std::string full = fmt::format("{}.{}", field.section, field.key);
    if (name == field.key || name == full) exact.push_back(full);
    full_names.push_back(full);
    keys.push_back(field.key);
  }
  if (!exact.empty()) return exact;
  const std::string_view nearest = nearest_name(name, keys);
  std::vector<std::string> meant;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!nearest.empty() && keys[i] == nearest) meant.push_back(full_names[i]);
  }
  return meant;
}

bool is_value_of(const std::string& key, const std::string& value) {
  const std::string text = fmt::format("{}={}", key, value);
  return try_run([&] { return parse_config("", "--set", std::span(&text, 1)); }).ok();
}

}  // namespace skein
