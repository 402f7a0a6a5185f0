#include "skein/data/tokenizer/byte_level/steps.h"

#include "skein/base/error.h"
#include "skein/bpe/unicode/invalid_utf8.h"
#include "skein/bpe/unicode/properties.h"

namespace skein {
namespace {

using bpe::SplitStep;
using Behavior = SplitStep::Behavior;

// A set of characters between brackets, without them.
std::string members_of(const bpe::CodePoints& set) {
  std::string members;
  for (const auto& [first, last] : set.ranges()) {
    members += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", static_cast<uint32_t>(first),
                           static_cast<uint32_t>(last));
  }
  return members;
}

std::shared_ptr<const bpe::Expression> expression_of(const std::string& source,
                                                     const TokenizerJson& reader) {
  try {
    return std::make_shared<const bpe::Expression>(source);
  } catch (const Error& error) {
    reader.unsupported(fmt::format("it splits or replaces by an expression: {}", error.what()),
                       "what its documentation lists (docs/corpus_format.md)");
  }
}

std::shared_ptr<const bpe::Expression> any_of(const bpe::CodePoints& set) {
  return std::make_shared<const bpe::Expression>("[" + members_of(set) + "]");
}

// {"Regex": …} or {"String": …}
template <class Step>
void parse_pattern(const Json& json, const TokenizerJson& reader, Step& step) {
  const Json& pattern = reader.member(json, "pattern");
  if (!pattern.is_object() || pattern.size() != 1) {
    reader.corrupt("'pattern' holds neither Regex nor String");
  }
  if (pattern.contains("Regex")) {
    step.expression = expression_of(reader.text_of(pattern, "Regex"), reader);
  } else {
    step.text = reader.text_of(pattern, "String");
    if (step.text.empty()) reader.unsupported("it splits or replaces by an empty text", "a text");
  }
}

Behavior behavior_of(const Json& json, const TokenizerJson& reader) {
  const std::pair<const char*, Behavior> kNames[] = {
      {"Removed", Behavior::kRemoved},
      {"Isolated", Behavior::kIsolated},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous}};
  const std::string name = reader.text_of(json, "behavior");
  for (const auto& [each, behavior] : kNames) {
    if (name == each) return behavior;
  }
  reader.unsupported(fmt::format("the pre-tokenizer has the behavior {}", name),
                     "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

bpe::MetaspaceStep metaspace_of(const Json& json, const TokenizerJson& reader) {
  bpe::MetaspaceStep step;
  step.replacement = reader.text_of(json, "replacement");
  if (!utf8::is_one_character(step.replacement) || step.replacement == " ") {
    reader.corrupt("'replacement' is not one character other than a space");
  }
  const Json& scheme = reader.optional(json, "prepend_scheme");
  if (scheme == "first") {
    step.prepend = bpe::MetaspaceStep::Prepend::kFirst;
  } else if (scheme == "never") {
    step.prepend = bpe::MetaspaceStep::Prepend::kNever;
  } else if (!scheme.is_null() && scheme != "always") {
    reader.corrupt("'prepend_scheme' is neither first nor never nor always");
  }
  if (!reader.flag_of(json, "add_prefix_space", true) &&
      step.prepend != bpe::MetaspaceStep::Prepend::kNever) {
    reader.unsupported("Metaspace has add_prefix_space false and another prepend_scheme than never",
                       "both to say the same");
  }
  step.split = reader.flag_of(json, "split", true);
  return step;
}

void add_pre_tokenizer(const Json& json, const TokenizerJson& reader,
                       std::vector<bpe::PreTokenizerStep>& steps) {
  const std::string type = reader.text_of(json, "type");
  if (type == "Sequence") {
    for (const Json& each : reader.array_of(json, "pretokenizers")) {
      add_pre_tokenizer(each, reader, steps);
    }
  } else if (type == "Split") {
    SplitStep step;
    parse_pattern(json, reader, step);
    step.behavior = behavior_of(json, reader);
    step.invert = reader.flag_of(json, "invert");
    steps.emplace_back(std::move(step));
  } else if (type == "Digits") {
    const bool each = reader.flag_of(json, "individual_digits");
    steps.emplace_back(SplitStep{.expression = any_of(bpe::unicode_numeric()),
                                 .behavior = each ? Behavior::kIsolated : Behavior::kContiguous});
  } else if (type == "Punctuation") {
    const bool is_default = reader.optional(json, "behavior").is_null();
    steps.emplace_back(
        SplitStep{.expression = any_of(bpe::unicode_punctuation()),
                  .behavior = is_default ? Behavior::kIsolated : behavior_of(json, reader)});
  } else if (type == "ByteLevel") {
    steps.emplace_back(
        bpe::ByteLevelStep{.add_prefix_space = reader.flag_of(json, "add_prefix_space", true),
                           .use_regex = reader.flag_of(json, "use_regex", true)});
  } else if (type == "Metaspace") {
    steps.emplace_back(metaspace_of(json, reader));
  } else if (type == "WhitespaceSplit") {
    steps.emplace_back(
        SplitStep{.expression = any_of(bpe::unicode_spaces()), .behavior = Behavior::kRemoved});
  } else if (type == "Whitespace") {
    const std::string word = members_of(bpe::unicode_added_word());
    steps.emplace_back(
        SplitStep{.expression = std::make_shared<const bpe::Expression>(
                      fmt::format("[{}]+|[^{}{}]+", word, word, members_of(bpe::unicode_spaces()))),
                  .behavior = Behavior::kRemoved,
                  .invert = true});
  } else if (type == "CharDelimiterSplit") {
    const std::string delimiter = reader.text_of(json, "delimiter");
    if (!utf8::is_one_character(delimiter)) reader.corrupt("'delimiter' is not one character");
    steps.emplace_back(SplitStep{.text = delimiter, .behavior = Behavior::kRemoved});
  } else {
    reader.unsupported(fmt::format("the pre-tokenizer is {}", type),
                       "Split, Digits, Punctuation, ByteLevel, Metaspace, Whitespace, "
                       "WhitespaceSplit, or a sequence of them");
  }
}

void add_normalizer(const Json& json, const TokenizerJson& reader,
                    std::vector<bpe::NormalizerStep>& steps) {
  using bpe::NormalForm;
  const std::pair<const char*, NormalForm> kForms[] = {{"NFC", NormalForm::kC},
                                                       {"NFD", NormalForm::kD},
                                                       {"NFKC", NormalForm::kKc},
                                                       {"NFKD", NormalForm::kKd}};
  const std::string type = reader.text_of(json, "type");
  for (const auto& [name, form] : kForms) {
    if (type == name) return void(steps.emplace_back(bpe::FormStep{form}));
  }
  if (type == "Sequence") {
    for (const Json& each : reader.array_of(json, "normalizers")) {
      add_normalizer(each, reader, steps);
    }
  } else if (type == "Replace") {
    bpe::ReplaceStep step;
    parse_pattern(json, reader, step);
    step.content = reader.text_of(json, "content");
    steps.emplace_back(std::move(step));
  } else if (type == "Prepend") {
    steps.emplace_back(bpe::PrependStep{reader.text_of(json, "prepend")});
  } else if (type == "Strip") {
    steps.emplace_back(
        bpe::StripStep{reader.flag_of(json, "strip_left"), reader.flag_of(json, "strip_right")});
  } else if (type == "ByteLevel") {
    steps.emplace_back(bpe::SpellBytesStep{});
  } else {
    reader.unsupported(fmt::format("the normalizer is {}", type),
                       "none, NFC, NFD, NFKC, NFKD, Replace, Prepend, Strip, ByteLevel, or a "
                       "sequence of them");
  }
}

void add_decoder(const Json& json, const TokenizerJson& reader,
                 std::vector<bpe::DecoderStep>& steps) {
  const std::string type = reader.text_of(json, "type");
  if (type == "Sequence") {
    for (const Json& each : reader.array_of(json, "decoders")) add_decoder(each, reader, steps);
  } else if (type == "ByteLevel") {
    steps.emplace_back(bpe::DecodeBytes{});
  } else if (type == "ByteFallback") {
    steps.emplace_back(bpe::DecodeFallback{});
  } else if (type == "Fuse") {
    steps.emplace_back(bpe::DecodeFuse{});
  } else if (type == "Replace") {
    bpe::ReplaceStep step;
    parse_pattern(json, reader, step);
    step.content = reader.text_of(json, "content");
    steps.emplace_back(std::move(step));
  } else if (type == "Strip") {
    steps.emplace_back(bpe::DecodeStrip{.content = reader.text_of(json, "content"),
                                        .start = reader.count_of(json, "start"),
                                        .stop = reader.count_of(json, "stop")});
  } else if (type == "Metaspace") {
    steps.emplace_back(metaspace_of(json, reader));
  } else {
    reader.unsupported(fmt::format("the decoder is {}", type),
                       "ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, or a sequence "
                       "of them");
  }
}

}  // namespace

bpe::Normalizer parse_normalizer(const Json& json, const TokenizerJson& reader) {
  bpe::Normalizer normalizer;
  if (!json.is_null()) add_normalizer(json, reader, normalizer.steps);
  return normalizer;
}

bpe::PreTokenizer parse_pre_tokenizer(const Json& json, const TokenizerJson& reader) {
  bpe::PreTokenizer pre_tokenizer;
  if (!json.is_null()) add_pre_tokenizer(json, reader, pre_tokenizer.steps);
  return pre_tokenizer;
}

bpe::Decoder parse_decoder(const Json& json, const TokenizerJson& reader) {
  bpe::Decoder decoder;
  if (json.is_null()) return decoder;
  decoder.joins_with_spaces = false;
  add_decoder(json, reader, decoder.steps);
  return decoder;
}

}  // namespace skein
