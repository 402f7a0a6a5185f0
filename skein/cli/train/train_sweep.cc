#include "skein/cli/train/train_sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <list>
#include <map>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/machine/cores.h"
#include "skein/base/text/toml.h"
#include "skein/cli/shared/command.h"
#include "skein/cli/shared/print.h"
#include "skein/compile/step_programs.h"
#include "skein/config/fields.h"
#include "skein/config/other_words.h"
#include "skein/launch/jobs/slurm_script.h"
#include "skein/launch/jobs/sweep.h"
#include "skein/launch/node/blocked_signals.h"
#include "skein/launch/node/worker_cores.h"
#include "skein/launch/node/worker_process.h"
#include "skein/launch/place/rank_info.h"
#include "skein/record/report/report.h"

namespace skein {
namespace {

struct SweptRun {
  std::vector<std::string> settings;  // "section.key=value"
  fs::path dir;
  Config config;
  std::string name() const { return dir.filename().string(); }
};

// Where a run stands, as its folder says.
struct Standing {
  std::string state = "not begun";  // or done, stopped, failed
  int64_t step = 0;
  double loss = NAN, validation_loss = NAN;  // NAN: there is none
};

Standing standing_of(const SweptRun& run) {
  Standing standing;
  const auto read = try_run([&] { return read_report(run.dir); });
  if (!read.ok()) return standing;
  const RunReport report = Result<RunReport>(read).value();
  if (!report.steps.empty()) {
    standing.step = report.steps.back().step;
    standing.loss = report.steps.back().loss;
  }
  for (const RunReport::Validation& validation : report.validations) {
    if (validation.set.empty() || report.validations.front().set == validation.set) {
      standing.validation_loss = validation.loss;
    }
  }
  const std::string& reason = report.last_stop_reason;
  const bool is_stopped = report.end == RunReport::End::kStopped;
  const bool reached = report.planned_steps && standing.step >= *report.planned_steps &&
                       (run.config.run.epochs > 0 || standing.step >= run.config.run.steps);
  const bool is_done = is_stopped && ((reason == "done" && reached) || reason == "no_better");
  standing.state = is_done                                  ? "done"
                   : is_stopped                             ? "stopped"
                   : report.end == RunReport::End::kRunning ? "running"
                                                            : "failed";
  return standing;
}

// What a sweep may not change, since its runs are compared by their losses.
void check_same_corpora(const SweptRun& first, const SweptRun& run) {
  const DataConfig &a = first.config.data, &b = run.config.data;
  const char* key = a.train != b.train                     ? "data.train"
                    : a.source != b.source                 ? "data.source"
                    : a.tokenizer != b.tokenizer           ? "data.tokenizer"
                    : a.validation != b.validation         ? "data.validation"
                    : a.validation_set != b.validation_set ? "data.validation_set"
                                                           : nullptr;
  if (key == nullptr) return;
  fail(ErrorCode::kUsage,
       "--sweep {}: the runs of a sweep read the same text with the same tokenizer, so that their "
       "losses can be compared: expected other keys; runs on other data are started one by one",
       key);
}

// A folder that holds a run keeps its settings.
void check_same_settings(const SweptRun& run) {
  const fs::path file = run.dir / "config.toml";
  if (!fs::exists(file)) return;
  Config before = load_config(file.string()), now = run.config;
  for (const std::string& setting : run.settings) {
    const std::string name = setting.substr(0, setting.find('='));
    const size_t dot = name.find('.');
    const KnownKey key = find_key(name.substr(0, dot), name.substr(dot + 1), "--sweep");
    if (key.field == nullptr) continue;  // of the model: the run itself compares it
    const std::string was = toml_value(*key.field, before), is = toml_value(*key.field, now);
    // Of a length in tokens or epochs a run keeps the steps.
    if (was == is || name == "run.tokens" || name == "run.epochs") continue;
    fail(
        ErrorCode::kUsage,
        "{} holds a run with {} = {}, and this sweep has {} there: expected the --sweep with which "
        "the folder was begun, or another run.dir",
        run.dir.string(), name, was, is);
  }
}

std::vector<SweptRun> runs_of(const ConfigOptions& config, const SweepOptions& options) {
  std::vector<SweptRun> runs;
  const auto combinations = sweep_settings(options.sweep, advice_on_word);
  for (size_t i = 0; i < combinations.size(); ++i) {
    std::vector<std::string> overrides = config.overrides;
    overrides.insert(overrides.end(), combinations[i].begin(), combinations[i].end());
    SweptRun run{combinations[i], {}, load_config(config.path, overrides)};
    const bool sets_dir =
        std::any_of(run.settings.begin(), run.settings.end(),
                    [](const auto& text) { return text.starts_with("run.dir="); });
    if (sets_dir) {
      fail(ErrorCode::kUsage, "--sweep sets run.dir, and gives each run its own folder in {}",
           run.config.run.dir);
    }
    run.dir = sweep_run_dir(absolute_path(run.config.run.dir), i);
    runs.push_back(std::move(run));
    check_same_corpora(runs.front(), runs.back());
  }
  for (const SweptRun& run : runs) check_same_settings(run);
  return runs;
}

void check_place(const Config& config, const SweepOptions& options) {
  const auto rank = rank_info_from_environment();
  if (config.launch.nodes != "1" || (rank && rank->size > 1)) {
    fail(ErrorCode::kUsage,
         "train --sweep runs on one machine, and {}: expected `skein launch --slurm … --sweep`, "
         "which makes a job of each run",
         rank ? fmt::format("{} started {} ranks", rank->launcher, rank->size)
              : fmt::format("launch.nodes is \"{}\"", config.launch.nodes));
  }
  if (!config.checkpoint.dir.empty()) {
    fail(ErrorCode::kUsage,
         "checkpoint.dir is {}, and each run of a sweep has a folder of its own: expected "
         "checkpoint.dir = \"\"",
         config.checkpoint.dir);
  }
  if (options.side_by_side == 1) return;
  if (training_backend(config).has_own_memory) {
    fail(
        ErrorCode::kUsage,
        "--side-by-side {}: runs would share one GPU's memory: expected 1, one run after the other",
        options.side_by_side);
  }
  if (!config.log.prometheus.empty()) {
    fail(ErrorCode::kUsage,
         "--side-by-side {}: one run alone can serve log.prometheus = {}: expected it empty, or "
         "runs one after the other",
         options.side_by_side, config.log.prometheus);
  }
}

// Starts runs and waits for them.
class Conductor {
 public:
  Conductor(const ConfigOptions& config, const SweepOptions& options)
      : config_(config), options_(options), cores_(usable_cores()) {}

  // Returns the signal that stopped it; 0: none did.
  int conduct(const std::vector<const SweptRun*>& runs) {
    int stop = 0;
    size_t next = 0;
    while (!under_way_.empty() || (stop == 0 && next < runs.size())) {
      while (stop == 0 && next < runs.size() && std::ssize(under_way_) < options_.side_by_side) {
        start(*runs[next++]);
      }
      const int signal = signals_.wait(Millis(100));
      if (signal == SIGINT || signal == SIGTERM || signal == SIGUSR1) {
        if (stop == 0) say(fmt::format("stopping {} run(s), saved", under_way_.size()));
        stop = signal;
        for (UnderWay& one : under_way_) one.process.send(SIGTERM);
      }
      collect();
    }
    return stop;
  }
  bool has_failed(const SweptRun& run) const { return failed_.contains(&run); }
  int worst() const { return worst_; }

 private:
  struct UnderWay {
    const SweptRun* run;
    int slot;
    WorkerProcess process;
  };

  static void say(const std::string& text) { print_line(stderr, "{}", text); }

  void start(const SweptRun& run) {
    int slot = 0;
    while (std::any_of(under_way_.begin(), under_way_.end(),
                       [&](const UnderWay& one) { return one.slot == slot; })) {
      ++slot;
    }
    WorkerProcess::Start start;
    start.arguments = {"train", config_.path};
    for (const std::string& text : config_.overrides) add(start.arguments, text);
    for (const std::string& text : run.settings) add(start.arguments, text);
    add(start.arguments, "run.dir=" + run.dir.string());
    start.signal_mask = signals_.former();
    start.own_group = true;  // Ctrl-C reaches this process alone, which passes it on once
    const bool is_alone = options_.side_by_side == 1;
    if (!is_alone) {
      make_folders(run.dir.parent_path());
      start.output = run.dir.string() + ".log";
    }
    say(fmt::format("run {}: {}{}", run.name(), fmt::join(run.settings, " "),
                    is_alone ? "" : fmt::format(" (its progress: {})", start.output.string())));
    // Each run would take the whole quota.
    if (!is_alone && has_tight_quota() && std::getenv("OMP_NUM_THREADS") == nullptr) {
      const int64_t processes = options_.side_by_side * run.config.launch.workers;
      start.environment.push_back(
          fmt::format("OMP_NUM_THREADS={}", std::max<int64_t>(1, num_cores() / processes)));
    }
    const BoundToCores bound(
        is_alone ? std::vector<int>()
                 : cores_of_worker(cores_, slot, static_cast<int>(options_.side_by_side)));
    under_way_.push_back({&run, slot, WorkerProcess(0, start)});
  }
  static void add(std::vector<std::string>& arguments, const std::string& text) {
    arguments.insert(arguments.end(), {"--set", text});
  }

  void collect() {
    for (auto one = under_way_.begin(); one != under_way_.end();) {
      const auto status = one->process.poll();
      if (!status) {
        ++one;
        continue;
      }
      const int code = WIFEXITED(*status) ? WEXITSTATUS(*status) : kExitFailed;
      if (code != kExitDone && code != kExitRequeue) {
        failed_.insert({one->run, code});
        worst_ = std::max(worst_, kExitFailed);
      }
      if (code == kExitRequeue) stopped_ = true;
      say(fmt::format("run {}: {}", one->run->name(),
                      code == kExitDone      ? "done"
                      : code == kExitRequeue ? "stopped, saved"
                                             : fmt::format("failed with exit code {}", code)));
      one = under_way_.erase(one);
    }
  }

  const ConfigOptions& config_;
  const SweepOptions& options_;
  const std::vector<int> cores_;
  const BlockedSignals signals_{SIGIO};
  std::list<UnderWay> under_way_;
  std::map<const SweptRun*, int> failed_;
  int worst_ = kExitDone;

 public:
  bool stopped_ = false;  // a run was stopped by a signal of its own
};

struct RankedRun {
  const SweptRun* run;
  Standing standing;
};

// The best first; runs without a loss last, in their order.
std::vector<RankedRun> table_of(const std::vector<SweptRun>& runs, const Conductor& conductor) {
  std::vector<RankedRun> rows;
  for (const SweptRun& run : runs) {
    rows.push_back({&run, standing_of(run)});
    if (conductor.has_failed(run)) rows.back().standing.state = "failed";
  }
  const bool validated = std::any_of(rows.begin(), rows.end(), [](const RankedRun& row) {
    return !std::isnan(row.standing.validation_loss);
  });
  const auto loss = [&](const RankedRun& row) {
    const double found = validated ? row.standing.validation_loss : row.standing.loss;
    return std::isnan(found) ? std::numeric_limits<double>::infinity() : found;
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const RankedRun& a, const RankedRun& b) { return loss(a) < loss(b); });
  return rows;
}

void print_table(const std::vector<RankedRun>& rows) {
  const auto number = [](double value) {
    return std::isnan(value) ? std::string("-") : fmt::format("{:.4f}", value);
  };
  std::vector<std::vector<std::string>> cells = {{"run", "state", "step", "validation", "loss"}};
  for (const std::string& setting : rows.front().run->settings) {
    cells.front().push_back(setting.substr(0, setting.find('=')));
  }
  for (const RankedRun& row : rows) {
    cells.push_back({row.run->name(), row.standing.state, fmt::format("{}", row.standing.step),
                     number(row.standing.validation_loss), number(row.standing.loss)});
    for (const std::string& setting : row.run->settings) {
      cells.back().push_back(setting.substr(setting.find('=') + 1));
    }
  }
  std::vector<size_t> widths(cells.front().size());
  for (const auto& line : cells) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const auto& line : cells) {
    std::string text;
    for (size_t i = 0; i < line.size(); ++i) {
      text += fmt::format("{:<{}}{}", line[i], i + 1 < line.size() ? widths[i] : 0,
                          i + 1 < line.size() ? "  " : "");
    }
    fmt::print("{}\n", text);
  }
}

OrderedJson table_json(const std::vector<RankedRun>& rows) {
  OrderedJson runs = OrderedJson::array();
  const auto number = [](double value) {
    return std::isnan(value) ? OrderedJson() : OrderedJson(value);
  };
  for (const RankedRun& row : rows) {
    OrderedJson settings = OrderedJson::object();
    for (const std::string& setting : row.run->settings) {
      const size_t equals = setting.find('=');
      settings[setting.substr(0, equals)] = setting.substr(equals + 1);
    }
    runs.push_back({{"run", row.run->name()},
                    {"run_dir", row.run->dir.string()},
                    {"settings", settings},
                    {"state", row.standing.state},
                    {"step", row.standing.step},
                    {"validation_loss", number(row.standing.validation_loss)},
                    {"loss", number(row.standing.loss)}});
  }
  return {{"runs", std::move(runs)}};
}

}  // namespace

int train_sweep(const ConfigOptions& config, const SweepOptions& options) {
  const std::vector<SweptRun> runs = runs_of(config, options);
  check_place(runs.front().config, options);
  std::vector<const SweptRun*> unfinished;
  for (const SweptRun& run : runs) {
    if (standing_of(run).state != "done") unfinished.push_back(&run);
  }
  if (unfinished.size() < runs.size()) {
    fmt::print(stderr, "{} of {} runs are done already\n", runs.size() - unfinished.size(),
               runs.size());
  }
  Conductor conductor(config, options);
  const int signal = conductor.conduct(unfinished);
  const std::vector<RankedRun> rows = table_of(runs, conductor);
  if (options.json) {
    print_json(table_json(rows));
  } else {
    print_table(rows);
  }
  if (conductor.worst() != kExitDone) return conductor.worst();
  return signal != 0 || conductor.stopped_ ? kExitRequeue : kExitDone;
}

}  // namespace skein
