// A task with its documents: what is read and checked before a model is asked.
//
// Errors  those of the data set and of the requests; each names the task
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skein/evaluate/requests/requests.h"
#include "skein/evaluate/results/document_answers.h"
#include "skein/evaluate/results/evaluation.h"
#include "skein/evaluate/results/score_task.h"
#include "skein/evaluate/tasks/task_config.h"

namespace skein {

struct PreparedTask {
  std::shared_ptr<const TaskConfig> config;
  std::optional<TaskRequests> requests;   // of a task with a data set
  std::vector<DocumentRequests> written;  // of a file of requests
  int64_t num_documents = 0;              // of the split
  int64_t num_fewshot = 0;
  std::string digest;  // xxh3 of its configuration, documents and examples
};

PreparedTask prepare_task(std::shared_ptr<const TaskConfig> config,
                          const std::vector<std::filesystem::path>& data_folders,
                          const RequestOptions& options);

// All of them. An error of data sets that are missing names every task that lacks its own.
std::vector<PreparedTask> prepare_tasks(const std::vector<TaskNode>& asked,
                                        const std::vector<std::filesystem::path>& data_folders,
                                        const RequestOptions& options);

// The requests of all documents, without answers. Once.
std::vector<DocumentAnswers> ask_all(PreparedTask& task);

// score_task with the numbers of the task. `note` gets a line for what a person should look at:
// targets that are none of their choices.
TaskScores score_prepared(const PreparedTask& task, const std::vector<DocumentAnswers>& documents,
                          const ScoringOptions& options,
                          const std::function<void(const std::string&)>& note);

}  // namespace skein
