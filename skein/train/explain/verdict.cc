#include "skein/train/explain/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "skein/base/text/units.h"

namespace skein {
namespace {

std::string of_finite_loss(const StepAnswer& answer) {
  return fmt::format(
      "step {} ended the run, and with these weights the loss of its documents is finite: {}",
      answer.step,
      answer.is_exact ? "its gradient, or the weights after it, were not; a lower "
                        "optimizer.learning_rate may help"
                      : "the weights changed for the worse since; look with --exact, and at loss "
                        "and grad_norm of the last steps in metrics.jsonl");
}

}  // namespace

std::string verdict_of(const StepAnswer& answer) {
  if (std::isfinite(answer.loss)) return answer.ended_run ? of_finite_loss(answer) : "";
  const auto all = static_cast<int64_t>(answer.documents.size());
  const int64_t broken =
      std::ranges::count_if(answer.documents, [](const DocumentEffect& document) {
        return document.num_labels > 0 && !std::isfinite(document.loss);
      });
  if (broken < all) {
    return fmt::format("with these weights the loss of {} of {} is not finite: {} first", broken,
                       counted(all, "document"), broken == 1 ? "it comes" : "they come");
  }
  return fmt::format(
      "with the weights of step {} no document has a finite loss: {}. Look at loss and grad_norm "
      "of the steps before in metrics.jsonl, and ask why of the first that stands out",
      answer.weights_step,
      all == 1 ? "the document or the weights are broken" : "the weights are broken already");
}

}  // namespace skein
