// The scores of programs that a model wrote: each answer of a document is run with the document's
// test behind it, and pass@k is estimated from how many pass.
//
// Formula  of a document pass_at_k(n, c, k) (execution/pass_at_k.h), with its n answers, c of which
//          pass; of the task their mean
// Errors   those of the sandbox; kUnsupported for documents with several targets, kInvalid for a
//          target or an answer that is no text, and a k above n
// Source   code_eval of Hugging Face's evaluate 0.4.6, described by its behaviour
#pragma once

#include <string>
#include <vector>

#include "skein/evaluate/execution/python_sandbox.h"
#include "skein/evaluate/metrics/metric.h"
#include "skein/evaluate/metrics/score.h"
#include "skein/evaluate/results/document_answers.h"

namespace skein {

// Whether the task runs what the model writes. Errors: those of make_metrics.
bool runs_programs(const TaskConfig& task);

// Of each document, the results of its answers. `answers`: what the filter made of them.
std::vector<std::vector<ProgramResult>> run_answers(const std::vector<DocumentAnswers>& documents,
                                                    const std::vector<jinja::Value>& answers,
                                                    const PythonSandbox& sandbox, int num_threads);

std::vector<MetricScore> score_programs(const std::vector<ProgramResult>& results,
                                        const std::vector<ScoredMetric>& metrics);

}  // namespace skein
