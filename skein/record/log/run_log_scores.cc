// RunLog: what validations and evaluations found, and losses that are worse than a guess.
#include <fmt/format.h>

#include <cmath>

#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/record/files/event_fields.h"
#include "skein/record/log/run_log.h"

namespace skein {

// Once a start, after the loss was once better: a loss that is worse than a guess among all tokens,
// five steps in a row.
void RunLog::tell_divergence(const StepMetrics& metrics) {
  constexpr int64_t kSteps = 5;
  constexpr double kAbove = 1;  // nats: a model that begins is a little above
  if (worse_than_a_guess_ < 0 || scale_.guess_loss <= 0) return;
  has_learnt_ = has_learnt_ || metrics.loss < scale_.guess_loss;
  if (!has_learnt_) return;  // a wide model begins above it
  const bool is_worse = metrics.loss > scale_.guess_loss + kAbove;
  worse_than_a_guess_ = is_worse ? worse_than_a_guess_ + 1 : 0;
  if (worse_than_a_guess_ < kSteps) return;
  worse_than_a_guess_ = -1;
  const std::string reason = fmt::format(
      "the loss {:.4f} is above {:.4f}, that of a guess among all tokens, for {} steps: the run "
      "has diverged; a lower optimizer.learning_rate or a longer warm-up may help",
      metrics.loss, scale_.guess_loss, kSteps);
  events_.append("alarm", {{"step", metrics.step}, {"reason", reason}});
  progress_.clear();
  log::warn("step {}: {}", metrics.step, reason);
}

void RunLog::validation(const ValidationNote& note) {
  const auto loss = static_cast<float>(note.loss);
  OrderedJson event = {
      {"step", note.step}, {"loss", loss}, {"tokens", note.num_tokens}, {"seconds", note.seconds}};
  const bool has_bytes = note.bits_per_byte > 0 && std::isfinite(note.bits_per_byte);
  if (has_bytes) event["bits_per_byte"] = static_cast<float>(note.bits_per_byte);
  if (!note.set.empty()) event["set"] = note.set;
  events_.append("validation", event);
  if (tensorboard_) {
    tensorboard_->write_validation(unix_time(), note.step, note.set, loss,
                                   has_bytes ? static_cast<float>(note.bits_per_byte) : 0);
  }
  say(fmt::format("step {}: validation loss{} {:.4f}{} over {} tokens, in {}", note.step,
                  note.set.empty() ? "" : " of " + note.set, note.loss,
                  has_bytes ? fmt::format(" ({:.4f} bits per byte)", note.bits_per_byte) : "",
                  format_count(static_cast<double>(note.num_tokens)),
                  format_short_duration(note.seconds)));
}

// A line for each task.
void RunLog::evaluation(int64_t step, const std::string& tasks,
                        const std::vector<EvaluatedScore>& scores, double seconds) {
  events_.append(
      "evaluation",
      {{"step", step}, {"tasks", tasks}, {"seconds", seconds}, {"scores", scores_to_json(scores)}});
  if (tensorboard_) tensorboard_->write_evaluation(unix_time(), step, scores);
  std::string line;
  for (size_t i = 0; i < scores.size(); ++i) {
    const EvaluatedScore& score = scores[i];
    const bool is_first = i == 0 || scores[i - 1].task != score.task;
    line += is_first ? score.task : ",";
    line += fmt::format(" {} {:.4f}", score.metric, score.value);
    if (score.error) line += fmt::format(" ± {:.4f}", *score.error);
    if (i + 1 < scores.size() && scores[i + 1].task == score.task) continue;
    say(fmt::format("step {}: {}", step, line));
    line.clear();
  }
  say(fmt::format("step {}: evaluated in {}", step, format_short_duration(seconds)));
}

bool RunLog::has_evaluation(int64_t step, const std::string& tasks) const {
  bool has = false;
  for_each_json_line(dir_ / "events.jsonl", [&](const Json& json) {
    has = has || (text_or(json, "event", "") == "evaluation" &&
                  integer_or(json, "step", -1) == step && text_or(json, "tasks", "") == tasks);
  });
  return has;
}

}  // namespace skein
