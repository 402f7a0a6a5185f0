// A run beside others: its figures by name, its settings, its evaluations.
//
// Figures  loss, loss.best, validation.loss, validation.best, validation.NAME.loss, …, steps,
//          tokens, wall_seconds, tokens_per_s, matmul_ceiling_share, peak_utilization, goodput,
//          restarts, failures, grad_spikes, eval.TASK.METRIC. A run has those that it measured.
//          Losses are natural logs a token; validation.loss is the newest; tokens_per_s and the
//          shares are medians over steps
// Errors   Error{kNotFound} where a path is not there, or none of them is a run. A path that is no
//          run folder, beside one that is, is a note: shells expand SWEEP/*
// Memory   does not keep the steps: read_compared_runs hands each report on and drops it
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "skein/record/report/compare/run_evaluations.h"
#include "skein/record/report/compare/run_events.h"
#include "skein/record/report/compare/run_settings.h"
#include "skein/record/report/report.h"

namespace skein {

struct RunFigure {
  std::string name;
  double value = 0;
  std::string text;  // for people
  bool higher_is_better = false;
};

struct ComparedRun {
  std::string folder;
  std::string name;   // the shortest end of the path that no other run has
  std::string state;  // "done", "running", "failed", "killed", "stopped: SIGTERM", "not begun", …
  OrderedJson report;
  std::vector<RunFigure> figures;
  RunSettings settings;
  RunEvaluations evaluations;
  RunEvents events;
  std::vector<std::string> notes;  // what could not be read

  const RunFigure* find(const std::string& figure) const;
};

struct ComparedRuns {
  std::vector<ComparedRun> list;
  std::vector<std::string> notes;  // paths that are left out
};

// `visit` sees each run with its whole report.
using CompareVisitor = std::function<void(const ComparedRun&, const RunReport&)>;
ComparedRuns read_compared_runs(const std::vector<std::string>& folders,
                                const CompareVisitor& visit);

// The best first; runs without that figure last. Error{kUsage} for a figure that no run has.
// Returns the new order, as indexes of the old one.
std::vector<size_t> sort_runs(ComparedRuns& runs, const std::string& figure);

// Of each path the shortest end, in whole names, that no other path has.
std::vector<std::string> distinct_names(const std::vector<std::string>& folders);

// With how the newest start of each differs: "start.version" and the like.
std::vector<SettingDifference> differences_of(const ComparedRuns& runs);

}  // namespace skein
