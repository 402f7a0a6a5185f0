// The length of a run and what follows from it: run.steps from run.epochs or run.tokens, and the
// phases of the learning rate that were not set.
//
// Formula  run.tokens    steps = ceil(tokens / (global_sequences * sequence_length)); with
//                        batch.ramp the least number of steps that have as many
//          run.epochs    steps from epochs * the tokens of the corpus, which are counted, or
//                        estimated from 4 MiB of its text; the same result every time
//          warmup_steps  if not set: min(2000, steps / 10)
//          decay_steps   if not set: min(480000, steps - warmup_steps - constant_steps), at least 1
//          min_learning_rate
//                        if not set: min_learning_rate_ratio * learning_rate, to 15 digits, so that
//                        0.1 of 3e-4 is 3e-5. A file that sets it to just that, as the config.toml
//                        of a run folder does, leaves it to follow the learning_rate of a --set
#pragma once

#include <string>
#include <vector>

#include "skein/config/config.h"

namespace skein {

// What min_learning_rate is where it is not set.
double learning_rate_floor(const OptimizerConfig& optimizer);

// Converts run.tokens to run.steps and fills in the schedule. parse_config calls it.
void fill_run_length(Config& config);

// Converts run.epochs to run.steps. It must read the corpus, so only the commands that plan or
// train call it.
// Errors  kUsage: a plan without a corpus
void count_epochs(Config& config, ConfigUse use);

// One line for each derived value; empty where all were given or equal the documented defaults.
std::vector<std::string> run_length_notes(const Config& config);

// Warnings about a schedule that is probably a mistake.
std::vector<std::string> schedule_warnings(const Config& config);

}  // namespace skein
