// Targets and choices of documents: which answer a target names.
//
// Errors   kInvalid
// Source   lm-evaluation-harness 0.4.13, api/task.py
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "skein/jinja/values/value.h"

namespace skein {

// Whether a field of a task is there and not null.
bool is_given(const jinja::Value& field);
bool is_list(const jinja::Value& value);
// Python's int, true and false among them.
bool is_whole_number(const jinja::Value& value);
// str(value).
std::string shown(const jinja::Value& value);

// The texts of a list or a tuple.
std::vector<std::string> choices_of(const jinja::Value& value);
// choices[place]; below 0 it counts from the end, as in Python.
const std::string& choice_at(const std::vector<std::string>& choices, const jinja::Value& place);

// An example's answer: the choice at a whole number, the first of a list, or text. Nothing for none
// and for empty text.
std::optional<std::string> answer_of(const jinja::Value& target,
                                     const std::vector<std::string>& choices);

}  // namespace skein
