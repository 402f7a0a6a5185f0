#include "skein/evaluate/packed/evaluate_table.h"

#include <fmt/ranges.h>

#include "skein/evaluate/tasks/load_tasks.h"

namespace skein {

TaskTexts read_evaluate_table(const EvaluateConfig& config, const Tokenizer& tokenizer,
                              int64_t sequence_length,
                              const std::function<void(const std::string&)>& note) {
  const auto list_of = [](const std::string& folder) {
    std::vector<std::filesystem::path> folders;
    if (!folder.empty()) folders.emplace_back(folder);
    return folders;
  };
  RequestOptions options;
  if (config.num_fewshot >= 0) options.num_fewshot = config.num_fewshot;
  if (config.limit > 0) options.limit = static_cast<double>(config.limit);
  TextEncoder encoder(tokenizer, sequence_length);
  TaskTexts texts(load_tasks(config.tasks, "evaluate.tasks", list_of(config.include_path), note),
                  list_of(config.data), options, encoder);
  if (!texts.left_out().empty()) {
    note(fmt::format("evaluation in training leaves out {}: `skein eval` computes them",
                     fmt::join(texts.left_out(), ", ")));
  }
  if (texts.num_cut() > 0) {
    note(
        fmt::format("{} texts of {} are longer than data.sequence_length = {}, and lost their "
                    "beginning",
                    texts.num_cut(), config.tasks, sequence_length));
  }
  return texts;
}

}  // namespace skein
