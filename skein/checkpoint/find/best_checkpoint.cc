#include "skein/checkpoint/find/best_checkpoint.h"

#include "skein/base/error.h"
#include "skein/checkpoint/find/lineage.h"

namespace skein {

std::optional<double> loss_in(const Json& validation, const std::string& name) {
  const auto losses = validation.is_object() ? validation.find("losses") : validation.end();
  if (losses == validation.end() || !losses->is_object()) return std::nullopt;
  const auto loss = losses->find(name);
  if (loss == losses->end() || !loss->is_number()) return std::nullopt;
  return loss->get<double>();
}

std::optional<int64_t> best_step(std::span<const CheckpointInfo> checkpoints,
                                 const std::string& name) {
  std::optional<int64_t> best;
  double lowest = 0;
  for (const CheckpointInfo& info : checkpoints) {
    const auto validation = try_run([&] { return read_validation(info.path); });
    if (!validation.ok()) continue;
    const auto loss = loss_in(Result<Json>(validation).value(), name);
    const bool is_better =
        loss && (!best || *loss < lowest || (*loss == lowest && info.step < *best));
    if (!is_better) continue;
    lowest = *loss;
    best = info.step;
  }
  return best;
}

}  // namespace skein
