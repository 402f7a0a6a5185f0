// What files of tiktoken and tekken.json leave out: the patterns and special tokens of those that
// are known.
//
// Source  https://github.com/meta-llama/llama3: llama/tokenizer.py; https://github.com/openai/
//         tiktoken: tiktoken_ext/openai_public.py; Qwen/Qwen-7B: tokenization_qwen.py;
//         https://github.com/mistralai/mistral-common: tokens/tokenizers/tekken.py
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skein {

struct TiktokenKind {
  std::string pattern;
  std::vector<std::pair<std::string, int64_t>> specials;
  std::string bos, eos;  // empty: none
  bool nfc = false;
};

// Null: neither the name of the file nor its number of ranks says which it is.
const TiktokenKind* tiktoken_kind(std::string_view file_name, size_t num_ranks);

// Of a tekken.json that lists none.
inline constexpr const char* kTekkenSpecials[] = {"<unk>",
                                                  "<s>",
                                                  "</s>",
                                                  "[INST]",
                                                  "[/INST]",
                                                  "[AVAILABLE_TOOLS]",
                                                  "[/AVAILABLE_TOOLS]",
                                                  "[TOOL_RESULTS]",
                                                  "[/TOOL_RESULTS]",
                                                  "[TOOL_CALLS]",
                                                  "[IMG]",
                                                  "<pad>",
                                                  "[IMG_BREAK]",
                                                  "[IMG_END]",
                                                  "[PREFIX]",
                                                  "[MIDDLE]",
                                                  "[SUFFIX]",
                                                  "[SYSTEM_PROMPT]",
                                                  "[/SYSTEM_PROMPT]",
                                                  "[TOOL_CONTENT]"};

}  // namespace skein
