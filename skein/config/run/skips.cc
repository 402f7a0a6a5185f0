#include "skein/config/run/skips.h"

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "skein/checkpoint/find/newest_good.h"

namespace skein {

SkippedBatches skipped_by(const Config& config, const CheckpointReader* checkpoint) {
  SkippedBatches skipped;
  const SkippedBatches asked = SkippedBatches::parse(config.data.skip_batches);
  if (checkpoint != nullptr) {
    const TrainingState& state = checkpoint->state();
    const std::string path = checkpoint->path().string();
    if (!state.skipped_batches.is_null()) {
      skipped = SkippedBatches::from_json(state.skipped_batches, path + ": skipped_batches");
    }
    if (const auto batch = skipped.first_lacking(asked, skipped.batch_of(state.step))) {
      fail(ErrorCode::kUsage,
           "data.skip_batches names batch {}, and {} was trained on it: expected batches after {}; "
           "to leave it out, go back to a checkpoint before it with run.resume",
           *batch, path, skipped.batch_of(state.step));
    }
  }
  skipped.add(asked);
  return skipped;
}

SkippedBatches skipped_by_run(const Config& config) {
  const Lineage lineage = lineage_patiently(checkpoint_dir(config));
  if (lineage.conflict) throw *lineage.conflict;
  for (const CheckpointInfo& info : lineage.checkpoints) {
    auto reader = try_run([&] { return std::make_unique<CheckpointReader>(info.path); });
    if (reader.ok()) return skipped_by(config, reader.value().get());
    if (is_read_error(reader.error())) throw reader.error();
    log::warn("passing over the checkpoint {}: {}", info.path.string(), reader.error().what());
  }
  return skipped_by(config, nullptr);
}

}  // namespace skein
