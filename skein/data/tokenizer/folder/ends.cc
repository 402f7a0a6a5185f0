#include "skein/data/tokenizer/folder/ends.h"

#include <fmt/format.h>

#include "skein/base/error.h"

namespace skein {
namespace {

int32_t named_token(const TokenizerFolder::Named& named, const char* key,
                    const TokenLookup& lookup) {
  const int32_t id = lookup.id_of(named.text);
  if (id >= 0) return id;
  fail(ErrorCode::kInvalid, "{}: {} is \"{}\": expected an added token of {}", named.file.string(),
       key, named.text, lookup.name);
}

// What a class of transformers takes where no file says so.
int32_t class_eos(const TokenizerFolder& folder, const TokenLookup& lookup) {
  const std::string name = folder.class_name();
  const bool ends_in_endoftext = name.starts_with("GPT2Tokenizer") ||
                                 name.starts_with("Qwen2Tokenizer") ||
                                 name.starts_with("CodeGenTokenizer");
  return ends_in_endoftext ? lookup.id_of("<|endoftext|>") : -1;
}

int32_t find_eos(const TokenizerFolder& folder, const TokenLookup& lookup,
                 std::vector<std::string>& notes) {
  if (const auto named = folder.special("eos_token")) {
    return named_token(*named, "eos_token", lookup);
  }
  if (lookup.own_eos >= 0) return lookup.own_eos;
  if (const auto model = folder.model_eos(); model && lookup.has_token(model->id)) {
    notes.push_back(
        fmt::format("{}: no eos_token is named, so token {} ends a text: eos_token_id of {}",
                    lookup.name, model->id, model->file.string()));
    return static_cast<int32_t>(model->id);
  }
  if (const int32_t id = class_eos(folder, lookup); id >= 0) {
    notes.push_back(
        fmt::format("{}: no eos_token is named, so token {} ends a text: that of transformers' {}",
                    lookup.name, id, folder.class_name()));
    return id;
  }
  notes.push_back(
      fmt::format("{}: no token ends a text, so documents follow each other without one; "
                  "`eos_token` in tokenizer_config.json, beside it, names it",
                  lookup.name));
  return -1;
}

}  // namespace

TextEnds text_ends(const TokenizerFolder& folder, const TokenLookup& lookup) {
  TextEnds ends;
  ends.eos = find_eos(folder, lookup, ends.notes);
  if (const auto named = folder.special("mask_token")) ends.mask = lookup.id_of(named->text);
  ends.bos = lookup.own_bos;
  const auto adds_bos = folder.adds_bos();
  if (!adds_bos) return ends;
  const auto named = folder.special("bos_token");
  if (!*adds_bos) {
    ends.bos = -1;
  } else if (named) {
    ends.bos = named_token(*named, "bos_token", lookup);
  }
  return ends;
}

}  // namespace skein
