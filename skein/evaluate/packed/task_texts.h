// Tasks whose answers are log-probabilities, as texts to score, wherever they are scored.
//
// Left out  what needs to know whether an answer is the likeliest text: acc of a task of output
//           type loglikelihood, exact_match of multiple_choice. left_out() says so
// Errors    those of prepare_task and TextEncoder; kUnsupported, by name, for a task that generates
//           text, and one of which nothing is left
// Memory    the documents, without the texts of their requests
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "skein/evaluate/encode/text_encoder.h"
#include "skein/evaluate/prepare/prepared_task.h"
#include "skein/evaluate/tasks/task_group.h"

namespace skein {

class TaskTexts {
 public:
  TaskTexts(const std::vector<TaskNode>& asked,
            const std::vector<std::filesystem::path>& data_folders, const RequestOptions& options,
            TextEncoder& encoder);

  // Those of all tasks. Once.
  std::vector<EncodedText> take_texts() { return std::move(texts_); }
  int64_t num_documents() const;
  std::vector<std::string> names() const;
  int64_t num_cut() const { return num_cut_; }  // texts that lost their beginning
  // "lambada_openai: acc", a line each.
  const std::vector<std::string>& left_out() const { return left_out_; }

  // `logprobs`: of each text, the sum over its scored tokens.
  Evaluation score(std::span<const double> logprobs, const ScoringOptions& options,
                   const std::function<void(const std::string&)>& note);

 private:
  struct Asked {
    PreparedTask task;
    std::vector<DocumentAnswers> documents;
    std::vector<int64_t> num_texts;  // of each request, in order
    std::vector<std::string> left_out;
  };
  void encode(Asked& asked, TextEncoder& encoder);

  std::vector<TaskNode> nodes_;
  std::vector<Asked> asked_;
  std::vector<EncodedText> texts_;
  int64_t num_cut_ = 0;
  std::vector<std::string> left_out_;
};

}  // namespace skein
