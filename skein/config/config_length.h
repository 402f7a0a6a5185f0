// How long a run is, and what follows from that: run.steps from run.epochs or run.tokens, and the
// phases of the learning rate that nobody set.
//
// Formula  run.tokens  steps = ceil(tokens / (global_sequences * sequence_length))
//          run.epochs  the same of epochs * the tokens of the corpus, which are counted, or
//          estimated
//                      from 4 MiB of its text; the same every time
//          warmup_steps  left out: min(2000, steps / 10)
//          decay_steps   left out: min(480000, steps - warmup_steps - constant_steps), 1 at least
#pragma once

#include <string>
#include <vector>

#include "skein/config/config.h"

namespace skein {

// run.tokens becomes run.steps; the schedule is filled in. parse_config has done it.
void fill_run_length(Config& config);

// run.epochs becomes run.steps, which takes a look at the corpus; what plans or trains asks for it.
// Errors  kUsage: a plan that knows no corpus
void count_epochs(Config& config, ConfigUse use);

// What was derived, a line each; nothing where all was given or is the documented default.
std::vector<std::string> run_length_notes(const Config& config);

// What of the schedule can hardly be meant.
std::vector<std::string> schedule_warnings(const Config& config);

}  // namespace skein
