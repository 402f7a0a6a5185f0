// What a run is: its model, tokenizer, text and precision. It goes into every checkpoint, and what
// goes on from a checkpoint must be the same run: weights that another model reads go on training
// without a word, and wrongly.
//
// Kept     in the manifest's `configuration` (docs/checkpoint_format.md): the configuration, the
//          model's config.json, and what the tokenizer and the corpora hold by hash. Files may
//          move: what is in them counts
// Changed  kSetting: the learning rate, paths, layouts, …: said in one line
//          kMeaning: refused, unless run.accept_changes names the key
//          kImpossible: the state has no place in such a run: always refused
// Errors   Error{kUsage} naming the checkpoint, every key with both values, and the ways out;
//          Error{kInvalid} where the configuration in a manifest does not read
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/json.h"
#include "skein/checkpoint/checkpoint_reader.h"
#include "skein/config/config.h"
#include "skein/data/corpus_fingerprint.h"
#include "skein/model/decoder.h"

namespace skein {

// What a run reads, known by what is in it.
struct RunContent {
  std::string tokenizer;  // Tokenizer::content_hash
  int64_t tokens = 0;     // of its vocabulary
  CorpusFingerprint train;
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
  std::vector<std::string> not_compared;  // what `before` does not say: "the tokenizer", …
};

// Of two `configuration`s; `what` names the first in errors.
Comparison compare_configurations(const Json& before, const Json& after, const std::string& what);

// Of two models, as "model.<key>"; impossible where parameters have other shapes. With
// `in_export`, what only an exported config.json says as well.
std::vector<Change> compare_models(const DecoderConfig& before, const DecoderConfig& after,
                                   bool in_export);

// A tensor that a checkpoint of this run must hold.
struct NeededTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
};
// Weights, moments and masters, of all ranks together.
std::vector<NeededTensor> needed_tensors(const DecoderConfig& model,
                                         const PrecisionConfig& precision);

// Throws unless a run of the configuration `now` may go on from the checkpoint: same seed, the
// tensors that it needs and no other, nothing changed that is refused. Returns what did change, and
// says in one line what an older checkpoint does not tell.
std::vector<Change> accept_checkpoint(const CheckpointReader& checkpoint, const Json& now,
                                      std::span<const NeededTensor> needed, const RunConfig& run);

// Throws where a change is refused; `before` is what has the values of before, `and_then` how to go
// on otherwise.
void refuse_changes(std::span<const Change> changes, const std::string& accepted,
                    const std::string& before, std::string_view and_then);

// "optimizer.learning_rate 0.0003 → 0.0001, run.steps 10 → 20"
// For people: that the learning rate's phases, which nobody set, are other ones since the run has
// another length, and what keeps those of before. Empty where that is not so.
std::string schedule_that_follows(const Config& config, std::span<const Change> changes);

std::string changes_text(std::span<const Change> changes);
// [{"key", "before", "after"}, …]
OrderedJson changes_to_json(std::span<const Change> changes);

}  // namespace skein
