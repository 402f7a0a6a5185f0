#include "skein/data/tokenizer/folder/tiktoken_patterns.h"

#include <fmt/format.h>

#include "skein/bpe/steps/split_pattern.h"

namespace skein {
namespace {

constexpr std::string_view kCl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::string pattern_of(bpe::SplitPattern::Kind kind) {
  return std::string(bpe::SplitPattern::regular_expression(kind));
}

TiktokenKind llama3() {
  std::vector<std::string> names = {"<|begin_of_text|>",
                                    "<|end_of_text|>",
                                    "<|reserved_special_token_0|>",
                                    "<|reserved_special_token_1|>",
                                    "<|reserved_special_token_2|>",
                                    "<|reserved_special_token_3|>",
                                    "<|start_header_id|>",
                                    "<|end_header_id|>",
                                    "<|reserved_special_token_4|>",
                                    "<|eot_id|>"};
  for (int i = 5; names.size() < 256; ++i) {
    names.push_back(fmt::format("<|reserved_special_token_{}|>", i));
  }
  TiktokenKind kind{
      .pattern = pattern_of(bpe::SplitPattern::Kind::kLlama3), .bos = names[0], .eos = names[1]};
  for (const std::string& name : names) {
    kind.specials.emplace_back(name, 128000 + static_cast<int64_t>(kind.specials.size()));
  }
  return kind;
}

TiktokenKind qwen() {
  TiktokenKind kind{
      .pattern = pattern_of(bpe::SplitPattern::Kind::kQwen2),
      .specials = {{"<|endoftext|>", 151643}, {"<|im_start|>", 151644}, {"<|im_end|>", 151645}},
      .eos = "<|endoftext|>",
      .nfc = true};
  for (int i = 0; i < 205; ++i) {
    kind.specials.emplace_back(fmt::format("<|extra_{}|>", i), 151646 + i);
  }
  return kind;
}

}  // namespace

const TiktokenKind* tiktoken_kind(std::string_view file_name, size_t num_ranks) {
  static const TiktokenKind kLlama3 = llama3(), kQwen = qwen();
  static const TiktokenKind kGpt4 = {.pattern = std::string(kCl100k),
                                     .specials = {{"<|endoftext|>", 100257},
                                                  {"<|fim_prefix|>", 100258},
                                                  {"<|fim_middle|>", 100259},
                                                  {"<|fim_suffix|>", 100260},
                                                  {"<|endofprompt|>", 100276}},
                                     .eos = "<|endoftext|>"};
  static const TiktokenKind kGpt4o = {
      .pattern = std::string(kO200k),
      .specials = {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}},
      .eos = "<|endoftext|>"};
  if (num_ranks == 128000) return &kLlama3;
  if (num_ranks == 151643 && file_name == "qwen.tiktoken") return &kQwen;
  if (num_ranks == 100256 && file_name == "cl100k_base.tiktoken") return &kGpt4;
  if (num_ranks == 199998 && file_name == "o200k_base.tiktoken") return &kGpt4o;
  return nullptr;
}

}  // namespace skein
