// The filters of the environment in which lm-evaluation-harness renders a task's templates, where
// they differ from skein/jinja's own.
//
//   regex_replace   re.sub of Python: {{ question | regex_replace("[0-9]+", "#") }}; a third
//                   argument is how many are replaced, 0 for all
//   tojson          jinja2's: keys sorted, ASCII, <, >, & and ' as \u003c and the like
//
// Errors   jinja::Refusal: an expression or a replacement that Python refuses, or that exceeds the
//          limits of metrics/python_regex.h
// Source   lm-evaluation-harness 0.4.13, utils.py; jinja2 3.1.6, utils.py
#pragma once

#include <memory>

#include "skein/jinja/syntax/lexer.h"

namespace skein {

std::shared_ptr<const jinja::FilterMap> task_filters();

}  // namespace skein
