// The parts of a tokenizer.json that is written here: of a trained vocabulary, of a SentencePiece
// model, of files of other formats. AnyJson: OrderedJson where its bytes go to a file.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "skein/base/text/json.h"
#include "skein/data/tokenizer/byte_level/added_token.h"

namespace skein::internal {

template <class AnyJson>
AnyJson byte_level_json(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

// As `added_tokens` lists it.
template <class AnyJson>
AnyJson added_token_json(const AddedToken& token) {
  return {{"id", token.id},          {"content", token.text},  {"single_word", token.single_word},
          {"lstrip", token.lstrip},  {"rstrip", token.rstrip}, {"normalized", token.normalized},
          {"special", token.special}};
}

template <class AnyJson>
AnyJson split_json(const std::string& pattern) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

// Split by `pattern`, then bytes; without a pattern GPT-2's.
template <class AnyJson>
AnyJson pre_tokenizer_json(const std::string& pattern, bool add_prefix_space = false) {
  if (pattern.empty()) return byte_level_json<AnyJson>(add_prefix_space, true);
  return {{"type", "Sequence"},
          {"pretokenizers",
           {split_json<AnyJson>(pattern), byte_level_json<AnyJson>(add_prefix_space, false)}}};
}

// A template that puts a token before a text, and before each of a pair.
template <class AnyJson>
AnyJson template_json(const std::string& bos, int64_t bos_id) {
  const auto special = [&](int type) {
    return AnyJson{{"SpecialToken", {{"id", bos}, {"type_id", type}}}};
  };
  const auto sequence = [](const char* name, int type) {
    return AnyJson{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  AnyJson json{{"type", "TemplateProcessing"}};
  json["single"] = {special(0), sequence("A", 0)};
  json["pair"] = {special(0), sequence("A", 0), special(1), sequence("B", 1)};
  json["special_tokens"][bos] = {
      {"id", bos}, {"ids", AnyJson::array({bos_id})}, {"tokens", AnyJson::array({bos})}};
  return json;
}

// BPE over bytes, with neither normalizer nor pre-tokenizer.
template <class AnyJson>
AnyJson tokenizer_json(AnyJson vocabulary, AnyJson merges, bool ignore_merges) {
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", AnyJson::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},
          {"decoder", byte_level_json<AnyJson>(true, true)},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", ignore_merges},
            {"vocab", std::move(vocabulary)},
            {"merges", std::move(merges)}}}};
}

}  // namespace skein::internal
