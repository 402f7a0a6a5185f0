// What `skein why RUN --step N --save` kept of a run's steps: RUN/why/*.json, in the form that
// `skein why --json` prints.
//
// Errors   none: a file that is no such answer is a note
// Limits   the first 200 files by name, 16 MiB each, 10 documents of each; the rest is a note
#pragma once

#include <string>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/base/text/json.h"

namespace skein {

// {"step", "batch", "skipped", "exact", "weights_step", "loss", "num_documents", "documents":
//  [{"document", "source", "record", "tokens", "loss", "grad_norm", "loss_share", "text"}]} each,
// by step.
std::vector<OrderedJson> explained_steps(const fs::path& run_dir, std::vector<std::string>& notes);

}  // namespace skein
