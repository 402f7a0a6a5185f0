// What identifies a run: its model, tokenizer, text and precision. Every checkpoint stores it, and
// a run may resume from a checkpoint only if it is the same run: another model could load the same
// weights without an error and train a worse model.
//
// Kept     in the manifest's `configuration` (docs/checkpoint_format.md): the configuration, the
//          model's config.json, and hashes of the tokenizer's and the corpora's contents. Files may
//          move, since only contents are compared
// Changed  kSetting: the learning rate, paths, layouts, ...: allowed, and logged in one line
//          kMeaning: refused, unless run.accept_changes names the key
//          kImpossible: always refused, since the stored state does not fit such a run
// Errors   Error{kUsage} naming the checkpoint, every key with both values, and what to do;
//          Error{kInvalid} where the configuration in a manifest cannot be parsed
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/checkpoint/find/reader.h"
#include "skein/config/config.h"
#include "skein/data/lanes/corpus_fingerprint.h"
#include "skein/model/decoder.h"

namespace skein {

// Identifies what a run reads by its content.
struct RunContent {
  std::string tokenizer;                   // Tokenizer::content_hash
  int64_t tokens = 0;                      // size of its vocabulary
  std::optional<CorpusFingerprint> train;  // either, or
  struct Source {
    std::string name;
    double weight = 1;
    CorpusFingerprint text;
  };
  std::vector<Source> sources;  // of a mixture
  std::optional<CorpusFingerprint> validation;
};

// The manifest's `configuration`.
Json run_configuration(const Config& config, const DecoderConfig& model, const RunContent& content);

enum class ChangeKind { kSetting, kMeaning, kImpossible };

struct Change {
  std::string key;  // "optimizer.learning_rate"
  std::string before, after;
  ChangeKind kind = ChangeKind::kSetting;
  bool operator==(const Change&) const = default;
};

struct Comparison {
  std::vector<Change> changes;
  std::vector<std::string> not_compared;  // parts that `before` does not record
};

// Compares two `configuration`s; `what` names the first in errors.
Comparison compare_configurations(const Json& before, const Json& after, const std::string& what);

// Compares two models key by key, as "model.<key>". Changes are kImpossible where the parameters
// have other names or shapes. `in_export`: also compares keys that matter only in an exported
// config.json; those are kSetting.
std::vector<Change> compare_models(const DecoderConfig& before, const DecoderConfig& after,
                                   bool in_export);

// A tensor that a checkpoint of this run must hold.
struct NeededTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
};
// Weights, moments and master copies, over all ranks.
std::vector<NeededTensor> needed_tensors(const DecoderConfig& model, const Config& config);

// Throws unless a run of the configuration `now` may resume from the checkpoint: the same seed,
// exactly the tensors that the run needs, and no change that is refused. Returns the changes, and
// logs which parts an older checkpoint does not record.
std::vector<Change> accept_checkpoint(const CheckpointReader& checkpoint, const Json& now,
                                      std::span<const NeededTensor> needed, const RunConfig& run);

// Throws where a change is refused. In the error, `before` names what holds the old values, and
// `and_then` says what to do instead.
void refuse_changes(std::span<const Change> changes, const std::string& accepted,
                    const std::string& before, std::string_view and_then);

// "model.rope_theta is 10000 there and 500000 in the configuration; …": for errors.
std::string there_and_here(std::span<const Change> changes);

// A warning for people where the schedule or the length of the run changed, and the decay had ended
// before the next update, `step`: a new learning rate has no effect. Else empty.
std::string decay_that_has_ended(const Config& config, std::span<const Change> changes,
                                 int64_t step);

// A warning for people where the learning rate of the next update, `step`, is another since phases
// that were not set changed with the length of the run; it names the options that keep the old
// ones. Empty where it is the same.
std::string schedule_that_follows(const Config& config, std::span<const Change> changes,
                                  int64_t step);

std::string changes_text(std::span<const Change> changes);
// [{"key", "before", "after"}, ...]
OrderedJson changes_to_json(std::span<const Change> changes);

}  // namespace skein
