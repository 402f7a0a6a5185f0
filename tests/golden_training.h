// Training runs that transformers did (scripts/goldens/decoders.py): their batches and settings.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "skein/base/files/file.h"
#include "skein/base/text/json.h"
#include "skein/compile/step_programs.h"
#include "skein/config/parameter_rules.h"
#include "skein/data/lanes/batch.h"
#include "tests/places.h"

namespace skein {

inline fs::path goldens() {
  const char* elsewhere = std::getenv("SKEIN_TEST_GOLDENS");
  return elsewhere ? fs::path(elsewhere) : fs::path(kSourceFolder) / "tests/goldens";
}
inline const fs::path kGoldens = goldens();

// The rows of a step, beginning with 0.
inline Batch golden_batch(const Json& training, int64_t step) {
  const auto& rows = training.at("rows");
  const auto per_step = training.at("rows_per_step").get<int64_t>();
  Batch batch(0, per_step, static_cast<int64_t>(rows.at(0).at("tokens").size()));
  batch.num_label_tokens = 0;
  const auto num_rows = static_cast<int64_t>(rows.size());
  for (int64_t r = 0; r < per_step; ++r) {
    const Json& row = rows.at(static_cast<size_t>((step * per_step + r) % num_rows));
    const auto starts = row.at("document_starts").get<std::vector<int32_t>>();
    for (int64_t t = 0; t < batch.sequence_length; ++t) {
      const auto at = static_cast<size_t>(r * batch.sequence_length + t);
      batch.tokens[at] = row.at("tokens").at(t);
      batch.labels[at] = row.at("labels").at(t);
      batch.positions[at] = row.at("positions").at(t);
      batch.attention_starts[at] =
          *std::prev(std::upper_bound(starts.begin(), starts.end(), static_cast<int32_t>(t)));
      batch.num_label_tokens += batch.labels[at] != kNoLabel ? 1 : 0;
    }
  }
  return batch;
}

inline StepSpec golden_spec(const Json& training, const DecoderConfig& model) {
  const Json& optimizer = training.at("optimizer");
  StepSpec spec;
  spec.model = model;
  spec.sequence_length = static_cast<int64_t>(training.at("rows").at(0).at("tokens").size());
  spec.micro_batches = golden_batch(training, 0).sequences;
  spec.update.optimizer.beta1 = optimizer.at("beta1");
  spec.update.optimizer.beta2 = optimizer.at("beta2");
  spec.update.optimizer.epsilon = optimizer.at("epsilon");
  spec.update.weight_decay = optimizer.at("weight_decay");
  spec.update.clip_norm = optimizer.at("clip_norm");
  if (optimizer.contains("momentum")) {
    spec.update.optimizer.momentum = optimizer.at("momentum");
    spec.update.rule = parameter_rules({.name = "muon"}, model);
  }
  return spec;
}

}  // namespace skein
