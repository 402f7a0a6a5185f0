// Which checkpoint of a run is its best: the one with the lowest validation loss. No file points at
// it: a checkpoint's manifest holds the losses of the validation after its step, so that the best
// is computed from the checkpoints that are there, and a kill at any moment leaves nothing wrong.
//
// Format  the manifest's `validation` (docs/checkpoint_format.md):
//         {"losses": {"validation_loss": 2.31}, "best_by": "validation_loss", ...}
#pragma once

#include <optional>
#include <span>
#include <string>

#include "skein/base/text/json.h"
#include "skein/checkpoint/find/checkpoint_folder.h"

namespace skein {

// A manifest's `validation`; null where there is none. Throws as read_timeline (lineage.h).
Json read_validation(const fs::path& checkpoint);

// The loss of that name in it; nothing: the step was not validated.
std::optional<double> loss_in(const Json& validation, const std::string& name);

// The step with the lowest loss of that name, of equal ones the first. Checkpoints that cannot be
// read count as having none.
std::optional<int64_t> best_step(std::span<const CheckpointInfo> checkpoints,
                                 const std::string& name);

}  // namespace skein
