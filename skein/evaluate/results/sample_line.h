// A line of samples_TASK_DATE.jsonl: one document, what was asked, answered and scored.
//
// Format   doc_id, doc, target, arguments, resps, filtered_resps, filter, metrics, doc_hash,
//          prompt_hash, target_hash (SHA-256), and a key for each metric. Of programs that ran,
//          then `programs`: how each ended, which lm-evaluation-harness does not write
// Source   lm-evaluation-harness 0.4.13, evaluator.py, loggers/evaluation_tracker.py
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "skein/evaluate/execution/python_sandbox.h"
#include "skein/evaluate/metrics/score.h"
#include "skein/evaluate/results/document_answers.h"
#include "skein/jinja/values/value.h"

namespace skein {

// `answer`: what the filter made of a generated text.
std::string sample_line(const TaskConfig& task, const DocumentAnswers& document,
                        const jinja::Value& answer, const std::string& filter,
                        const std::vector<MetricScore>& scores,
                        const std::vector<ProgramResult>& programs = {});

// json.dumps(value, ensure_ascii=False); functions are their names. `indent`: of a level, 0: one
// line.
std::string python_json(const jinja::Value& value, int indent = 0);

// SHA-256 in hexadecimal digits.
std::string sha256_text(std::string_view text);

}  // namespace skein
