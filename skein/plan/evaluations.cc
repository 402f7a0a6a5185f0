#include "skein/plan/evaluations.h"

#include <memory>

#include "skein/base/error.h"
#include "skein/base/text/units.h"
#include "skein/config/data_feed.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "skein/evaluate/packed/evaluate_table.h"
#include "skein/evaluate/packed/packed_texts.h"

namespace skein {
namespace {

void count(const Config& config, const EvaluateConfig& asked, double step_seconds,
           PlannedEvaluation& planned) {
  const auto tokenizer = load_tokenizer(config.data.tokenizer, "data.tokenizer");
  const int64_t length = config.data.sequence_length;
  TaskTexts tasks =
      read_evaluate_table(asked, *tokenizer, length, [](const std::string& /*note*/) {});
  planned.num_documents = tasks.num_documents();
  const PackedTexts packed(tasks.take_texts(), length, config.data.document_mask);
  planned.num_texts = packed.num_texts();
  planned.num_tokens = packed.num_tokens();
  const int64_t sequences = config.batch.global_sequences;
  const int64_t batches = ceil_div(packed.num_rows(), sequences);
  planned.num_rows = batches * sequences;
  planned.seconds_each = step_seconds * static_cast<double>(batches) / 3;
}

}  // namespace

std::vector<PlannedEvaluation> plan_evaluations(const Config& config, double step_seconds) {
  std::vector<PlannedEvaluation> all;
  for (const EvaluateConfig& asked : config.evaluate) {
    PlannedEvaluation& planned = all.emplace_back();
    planned.tasks = asked.tasks;
    planned.every_steps = asked.every_steps;
    const int64_t steps = config.run.steps, every = asked.every_steps;
    planned.times = every == 0 ? 1 : ceil_div(steps, every);  // the last step as well
    if (config.data.tokenizer.empty()) {
      planned.unknown = "there is no tokenizer";
      continue;
    }
    const auto counted = try_run([&] {
      count(config, asked, step_seconds, planned);
      return true;
    });
    if (!counted.ok()) planned.unknown = counted.error().what();
  }
  return all;
}

}  // namespace skein
