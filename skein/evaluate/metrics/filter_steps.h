// The steps of answer_filters.h, made from their options; for answer_filters.cc alone.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "skein/evaluate/metrics/answer_filters.h"
#include "skein/evaluate/metrics/options.h"
#include "skein/evaluate/metrics/python_regex.h"

namespace skein {

FilterStep regex_step(const Options& options);
FilterStep regex_pos_step(const Options& options);
FilterStep multi_choice_step(const Options& options);
FilterStep map_step(const Options& options);
FilterStep take_first_k_step(const Options& options);

// What Python's `for` visits in answers: items of a list, characters of a text.
std::vector<jinja::Value> answers_of(const jinja::Value& answers);

// Of matches of findall, the one that `select` picks (negative: from the end): the first of its
// groups that is not empty; nothing if all are.
std::string selected_match(std::span<const std::vector<std::string>> matches, int64_t select,
                           bool& is_all_empty);

}  // namespace skein
