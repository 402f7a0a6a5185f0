#include "skein/base/text/foreign_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/visible_text.h"

namespace skein {
namespace {

#define USED(key) \
  { key, KeyUse::kUsed, "", "" }
#define ONLY(key, values, why) \
  { key, KeyUse::kOnly, why, values }
#define IGNORED(key, why) \
  { key, KeyUse::kIgnored, why, "" }
#define DRAWS(key, values) \
  { key, KeyUse::kDraws, kOfGeneration, values }

constexpr std::string_view kOfTraining = "how the model was trained or run, not what it computes",
                           kOfOutputs = "what transformers returns beside the logits",
                           kOfClasses = "of other heads than that of a language model",
                           kOfTools = "a note of the program that wrote the file",
                           kOfGeneration = "a default of generation, not of the model",
                           kOfLoading = "how transformers loads or lays out the model";

constexpr ForeignKey kConfig[] = {
#include "skein/base/text/foreign_keys_config.def"
};
constexpr ForeignKey kGenerationConfig[] = {
#include "skein/base/text/foreign_keys_generation.def"
};
constexpr ForeignKey kTokenizerConfig[] = {
#include "skein/base/text/foreign_keys_tokenizer.def"
};

constexpr ForeignKey kSpecialTokensMap[] = {
    USED("eos_token"),
    USED("bos_token"),
    IGNORED("unk_token", "the vocabulary says what stands for an unknown character"),
    IGNORED("pad_token", "rows are packed, not padded"),
    IGNORED("sep_token", "of encoders"),
    IGNORED("cls_token", "of encoders"),
    IGNORED("mask_token", "of encoders"),
    IGNORED("additional_special_tokens", "transformers 5 does not read it there"),
    USED("extra_special_tokens"),
};

constexpr ForeignKey kTokenizer[] = {
    USED("model"),
    USED("normalizer"),
    USED("pre_tokenizer"),
    USED("added_tokens"),
    USED("post_processor"),
    USED("decoder"),
    IGNORED("version", "1.0 in every file"),
    IGNORED("truncation", "texts are never cut"),
    IGNORED("padding", "rows are packed, not padded"),
};

constexpr ForeignKey kWeightIndex[] = {
    USED("weight_map"),
    IGNORED("metadata", "the sizes follow from the files"),
};

#undef USED
#undef ONLY
#undef IGNORED
#undef DRAWS

}  // namespace

std::span<const ForeignKey> foreign_keys(ForeignJson file) {
  switch (file) {
    case ForeignJson::kConfig:
      return kConfig;
    case ForeignJson::kGenerationConfig:
      return kGenerationConfig;
    case ForeignJson::kTokenizerConfig:
      return kTokenizerConfig;
    case ForeignJson::kSpecialTokensMap:
      return kSpecialTokensMap;
    case ForeignJson::kTokenizer:
      return kTokenizer;
    case ForeignJson::kWeightIndex:
      return kWeightIndex;
  }
  return {};
}

const ForeignKey* find_foreign_key(ForeignJson file, std::string_view key) {
  const auto find = [key](std::span<const ForeignKey> rows) -> const ForeignKey* {
    const auto found = std::find_if(rows.begin(), rows.end(),
                                    [key](const ForeignKey& row) { return row.key == key; });
    return found == rows.end() ? nullptr : &*found;
  };
  const ForeignKey* row = find(foreign_keys(file));
  // transformers before 5 wrote the defaults of generation into config.json.
  if (row == nullptr && file == ForeignJson::kConfig) row = find(kGenerationConfig);
  return row;
}

bool is_one_of(const ForeignKey& row, const Json& value) {
  if (value.is_null()) return true;
  const Json values = Json::parse(row.values);
  return std::find(values.begin(), values.end(), value) != values.end();
}

void check_foreign_values(ForeignJson file, const Json& object, const std::string& what) {
  if (!object.is_object()) return;
  for (const auto& [key, value] : object.items()) {
    const ForeignKey* row = find_foreign_key(file, key);
    if (row == nullptr || row->use != KeyUse::kOnly || is_one_of(*row, value)) continue;
    const Json values = Json::parse(row->values);
    std::vector<std::string> texts;
    for (const Json& each : values) texts.push_back(json_text(each));
    fail(ErrorCode::kUnsupported, "{}: {} is {}, expected {}: {}", what, key,
         visible_text(json_text(value), 80),
         texts.empty() ? "null" : fmt::format("{}", fmt::join(texts, " or ")), row->why);
  }
}

std::vector<std::string> unknown_keys(ForeignJson file, const Json& object) {
  std::vector<std::string> unknown;
  if (!object.is_object()) return unknown;
  for (const auto& [key, value] : object.items()) {
    if (find_foreign_key(file, key) == nullptr) unknown.push_back(key);
  }
  return unknown;
}

std::string unknown_keys_text(const std::string& what, const std::vector<std::string>& unknown) {
  constexpr size_t kShown = 3;
  if (unknown.empty()) return "";
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(kShown, unknown.size()); ++i) {
    shown.push_back(fmt::format("'{}'", visible_text(unknown[i], 60)));
  }
  return fmt::format(
      "{}: Skein does not know the key{} {}{}, and goes by the others alone: make sure that the "
      "model computes the same without",
      what, unknown.size() == 1 ? "" : "s", fmt::join(shown, ", "),
      unknown.size() > kShown ? fmt::format(" and {} more", unknown.size() - kShown) : "");
}

}  // namespace skein
