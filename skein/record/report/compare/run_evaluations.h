// The evaluations that a run folder holds: RUN/eval/**/results_*.json of `skein eval`, in the form
// of lm-evaluation-harness, and evaluations in training.
//
// Errors   none: a file that is no such result, or that lies beyond a limit, is a note
// Limits   1,000 files, 64 MiB each, 4 folders deep
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skein/record/report/report.h"

namespace skein {

struct RunEvaluation {
  std::string file;                    // below the run folder; "training"
  std::optional<int64_t> step;         // of the checkpoint; nothing: the file does not say
  double date = 0;                     // seconds since 1970; 0: not known
  std::vector<EvaluatedScore> scores;  // `task` says also what another question of it asked
};

struct RunEvaluations {
  std::vector<RunEvaluation> list;  // by step, then by date; those without a step come first
  std::vector<std::string> notes;
};

RunEvaluations read_evaluations(const RunReport& report);

// Of each task and metric the newest score, in order of their names.
std::vector<EvaluatedScore> newest_scores(const RunEvaluations& evaluations);

}  // namespace skein
