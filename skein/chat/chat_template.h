// A chat template, with the special tokens that it spells; as `skein data ingest --chat-template`
// names it, or as a tokenizer comes with it.
//
//   default        ChatML: <|im_start|>ROLE\nCONTENT<|im_end|>\n for each message
//   a folder       of a tokenizer: its chat_template.jinja, else chat_template of
//                  tokenizer_config.json (of a list of templates the one named default)
//   a file         a template; tokenizer_config.json; its tokens are those of the folder it lies in
//
// bos_token, eos_token, unk_token and pad_token are those of tokenizer_config.json and
// special_tokens_map.json.
//
// Errors   Error{kUsage} naming what was looked for, and jinja's for a template that is not
//          supported
// Source   transformers 5.24, tokenization_utils_base.py
#pragma once

#include <map>
#include <optional>
#include <string>

#include "skein/base/files/file.h"

namespace skein {

struct ChatTemplateSource {
  std::string name;    // for people and errors: "tok/tokenizer_config.json: chat_template"
  std::string source;  // the template
  std::map<std::string, std::string> tokens;  // bos_token: "<s>"
};

// `named`: as above; `tokenizer`: the folder of the tokenizer that training will use; empty: the
// one of the template. One of the two is given.
ChatTemplateSource chat_template_source(const std::string& named, const fs::path& tokenizer);

// bos_token, eos_token, unk_token and pad_token, those that a tokenizer's files name.
std::map<std::string, std::string> special_tokens_of(const fs::path& tokenizer);

// The template that a tokenizer, a folder or a file in one, comes with; nothing: none.
std::optional<ChatTemplateSource> own_chat_template(const fs::path& tokenizer);

}  // namespace skein
