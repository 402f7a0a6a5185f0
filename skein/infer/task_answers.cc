#include "skein/infer/task_answers.h"

#include <utility>

#include "skein/evaluate/prepare/generation_settings.h"
#include "skein/evaluate/prepare/prepared_task.h"

namespace skein {
namespace {

using Kind = EvaluationRequest::Kind;

// The requests of one kind, in order.
std::vector<const EvaluationRequest*> of_kind(const std::vector<DocumentAnswers>& documents,
                                              Kind kind) {
  std::vector<const EvaluationRequest*> requests;
  for (const DocumentAnswers& document : documents) {
    for (const EvaluationRequest& request : document.asked.requests) {
      if (request.kind == kind) requests.push_back(&request);
    }
  }
  return requests;
}

// Requests of one kind belong to all documents of a task alike.
void give_out(std::vector<ScoredAnswer> answers, std::vector<DocumentAnswers>& documents) {
  size_t next = 0;
  for (DocumentAnswers& document : documents) {
    for (size_t i = 0; i < document.asked.requests.size(); ++i) {
      document.scored.push_back(answers[next++]);
    }
  }
}

TextGeneration generation_of(const TaskConfig& task, const std::vector<int64_t>& eos_ids) {
  const GenerationSettings settings = generation_settings(task);
  TextGeneration generation;
  generation.max_new_tokens = settings.max_tokens;
  generation.stop = settings.until;
  generation.eos_ids = eos_ids;
  generation.sampling.temperature = settings.temperature;
  generation.sampling.top_p = settings.top_p;
  generation.sampling.top_k = settings.top_k;
  return generation;
}

}  // namespace

std::vector<DocumentAnswers> answer_task(
    PreparedTask& prepared, Answerer& answerer, const std::vector<int64_t>& eos_ids,
    const std::function<void(int64_t num_done, int64_t num_requests)>& progress) {
  const TaskConfig& task = *prepared.config;
  std::vector<DocumentAnswers> documents = ask_all(prepared);
  const auto report = [&](size_t of) {
    return [&progress, of](int64_t num_done) {
      if (progress) progress(num_done, static_cast<int64_t>(of));
    };
  };
  if (const auto pairs = of_kind(documents, Kind::kLoglikelihood); !pairs.empty()) {
    std::vector<Answerer::Pair> asked;
    for (const EvaluationRequest* pair : pairs) {
      asked.push_back({pair->context, pair->continuation});
    }
    give_out(answerer.score(asked, report(asked.size())), documents);
  }
  if (const auto texts = of_kind(documents, Kind::kRolling); !texts.empty()) {
    std::vector<std::string_view> asked;
    for (const EvaluationRequest* text : texts) asked.push_back(text->continuation);
    give_out(answerer.score_whole(asked, report(asked.size())), documents);
  }
  const auto prompts = of_kind(documents, Kind::kGenerateUntil);
  if (prompts.empty()) return documents;
  std::vector<std::string_view> asked;
  for (const EvaluationRequest* prompt : prompts) asked.push_back(prompt->context);
  TextGeneration generation = generation_of(task, eos_ids);
  for (int64_t sample = 0; sample < task.repeats; ++sample) {
    const bool is_new = sample == 0 || generation.sampling.temperature > 0;
    generation.sampling.seed = static_cast<uint64_t>(sample) + 1;
    std::vector<std::string> texts;
    if (is_new) texts = answerer.generate(asked, generation, report(asked.size()));
    size_t next = 0;
    for (DocumentAnswers& document : documents) {
      document.texts.resize(document.asked.requests.size());
      for (auto& samples : document.texts) {
        samples.push_back(is_new ? std::move(texts[next++]) : samples.back());
      }
    }
  }
  return documents;
}

}  // namespace skein
