// What a model answers to all requests of a task, document by document.
//
// Repeats   of a task that asks for several answers to a prompt: sample i is drawn with seed i + 1;
//           without sampling all are equal, and computed once
// Errors    those of TaskRequests, Answerer and generation_settings
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "skein/evaluate/prepare/prepared_task.h"
#include "skein/evaluate/results/document_answers.h"
#include "skein/infer/answerer.h"

namespace skein {

// `progress`: requests that have an answer, of how many.
std::vector<DocumentAnswers> answer_task(
    PreparedTask& prepared, Answerer& answerer, const std::vector<int64_t>& eos_ids,
    const std::function<void(int64_t num_done, int64_t num_requests)>& progress);

}  // namespace skein
