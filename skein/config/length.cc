#include "skein/config/length.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "skein/base/error.h"
#include "skein/base/text/units.h"
#include "skein/config/batches.h"
#include "skein/config/data_feed.h"
#include "skein/config/fields.h"
#include "skein/data/lanes/token_count.h"

namespace skein {
namespace {

int64_t tokens_of_step(const Config& config) {
  return config.batch.global_sequences * config.data.sequence_length;
}

// " of 4096 tokens", or of a ramp "".
std::string of_tokens(const Config& config) {
  const std::string text = fmt::format(" of {} tokens", tokens_of_step(config));
  return config.batch.ramp.empty() ? text : " by batch.ramp, the last" + text;
}

// `key`: the key and its value for errors, such as "run.tokens = 1000".
void set_steps(Config& config, double tokens, const std::string& key) {
  auto ramp = try_run([&] { return batch_ramp(config); });
  if (!ramp.ok()) fail(ErrorCode::kUsage, "[batch] {}", ramp.error().what());
  const int64_t steps = ramp.value().batches_of(tokens, config.data.sequence_length);
  if (steps > kMaxSteps) {
    fail(ErrorCode::kUsage, "{} is {} steps{}: expected at most {} steps", key, steps,
         of_tokens(config), kMaxSteps);
  }
  config.run.steps = std::max<int64_t>(1, steps);
}

int64_t usual_warmup(int64_t steps) { return std::min(OptimizerConfig().warmup_steps, steps / 10); }

void fill_schedule(Config& config) {
  const OptimizerConfig defaults;
  OptimizerConfig& optimizer = config.optimizer;
  const int64_t steps = config.run.steps;
  if (!config.origin.floor_given) optimizer.min_learning_rate = learning_rate_floor(optimizer);
  if (!config.origin.warmup_given) optimizer.warmup_steps = usual_warmup(steps);
  if (!config.origin.decay_given) {
    const int64_t left = steps - optimizer.warmup_steps - optimizer.constant_steps;
    optimizer.decay_steps = std::clamp<int64_t>(left, 1, defaults.decay_steps);
  }
}

}  // namespace

double learning_rate_floor(const OptimizerConfig& optimizer) {
  const double product = optimizer.min_learning_rate_ratio * optimizer.learning_rate;
  return std::strtod(fmt::format("{:.15g}", product).c_str(), nullptr);
}

void fill_run_length(Config& config) {
  if (config.run.tokens > 0) {
    const std::string key = fmt::format("run.tokens = {}", config.run.tokens);
    set_steps(config, static_cast<double>(config.run.tokens), key);
    config.origin.length =
        fmt::format("{} is run.steps = {}{}", key, config.run.steps, of_tokens(config));
    config.run.tokens = 0;  // run.steps is the only key of the length from here on
  }
  fill_schedule(config);
}

void count_epochs(Config& config, ConfigUse use) {
  if (config.run.epochs <= 0) return;
  const std::string key = fmt::format("run.epochs = {}", config.run.epochs);
  if (use == ConfigUse::kPlan && (config.data.train.empty() || config.data.tokenizer.empty())) {
    fail(ErrorCode::kUsage,
         "{}: how many steps that is depends on the text: name data.train and data.tokenizer, or "
         "plan with --set run.steps=N",
         key);
  }
  const auto tokenizer = load_tokenizer(config.data.tokenizer, "data.tokenizer");
  const DataFeed feed(*tokenizer, config, 0);
  const TokenCount count = count_tokens(feed.mixture().corpus(0));
  set_steps(config, config.run.epochs * count.tokens, key);
  config.origin.length = fmt::format(
      "{} is run.steps = {}{}: {} holds {} tokens{}", key, config.run.steps, of_tokens(config),
      config.data.train, format_count(count.tokens),
      count.is_exact ? ""
                     : fmt::format(", estimated from {} of it", format_bytes(count.counted_bytes)));
  config.run.epochs = 0;
  fill_schedule(config);
}

std::vector<std::string> run_length_notes(const Config& config) {
  std::vector<std::string> notes;
  const OptimizerConfig defaults;
  const OptimizerConfig& optimizer = config.optimizer;
  if (!config.origin.length.empty()) notes.push_back(config.origin.length);
  std::vector<std::string> derived;
  const auto add = [&](bool given, const char* key, int64_t value, int64_t usual) {
    if (!given && value != usual) derived.push_back(fmt::format("optimizer.{} = {}", key, value));
  };
  add(config.origin.warmup_given, "warmup_steps", optimizer.warmup_steps, defaults.warmup_steps);
  if (optimizer.schedule != "constant") {
    add(config.origin.decay_given, "decay_steps", optimizer.decay_steps, defaults.decay_steps);
  }
  if (!derived.empty()) {
    const bool is_one = derived.size() == 1;
    notes.push_back(fmt::format("{} {} from run.steps = {}, since {} not set",
                                fmt::join(derived, " and "), is_one ? "follows" : "follow",
                                config.run.steps, is_one ? "it is" : "they are"));
  }
  if (!config.origin.floor_given && optimizer.schedule != "constant" &&
      optimizer.min_learning_rate != defaults.min_learning_rate) {
    notes.push_back(fmt::format(
        "optimizer.min_learning_rate = {} is {} of optimizer.learning_rate = {} "
        "(min_learning_rate_ratio), since it is not set",
        optimizer.min_learning_rate, optimizer.min_learning_rate_ratio, optimizer.learning_rate));
  }
  return notes;
}

std::vector<std::string> schedule_warnings(const Config& config) {
  const OptimizerConfig& optimizer = config.optimizer;
  const int64_t steps = config.run.steps;
  if (optimizer.warmup_steps >= steps && steps > 1) {
    return {fmt::format(
        "optimizer.warmup_steps is {} and run.steps {}: the run is all warm-up, and the learning "
        "rate ends at {:.3g}; a run of this length usually has --set optimizer.warmup_steps={}",
        optimizer.warmup_steps, steps,
        optimizer.learning_rate * static_cast<double>(steps) /
            static_cast<double>(optimizer.warmup_steps),
        usual_warmup(steps))};
  }
  if (optimizer.schedule == "constant") return {};
  constexpr int64_t kEarly = 4;  // warns if the decay ends in the first quarter of the run
  const int64_t end = optimizer.warmup_steps + optimizer.constant_steps + optimizer.decay_steps;
  if (end * kEarly > steps) return {};
  return {fmt::format(
      "the learning rate has decayed to optimizer.min_learning_rate = {:g} by step {} of {}: --set "
      "optimizer.decay_steps={} in place of {} has it decay to the end",
      optimizer.min_learning_rate, end, steps,
      steps - optimizer.warmup_steps - optimizer.constant_steps, optimizer.decay_steps)};
}

}  // namespace skein
