#include "skein/data/tokenizer/folder/sources.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/bpe/steps/split_pattern.h"
#include "skein/bpe/unicode/byte_alphabet.h"
#include "skein/data/tokenizer/folder/files.h"
#include "skein/data/tokenizer/folder/made.h"
#include "skein/data/tokenizer/folder/tiktoken_patterns.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

using namespace internal;

constexpr size_t kMaxTokenBytes = 512;  // its merges are found in quadratic time

// False where it is no base64.
bool decode_base64(std::string_view text, std::string& bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.empty() || text.size() % 4 != 0) return false;
  for (int pads = 0; pads < 2 && text.ends_with('='); ++pads) text.remove_suffix(1);
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return false;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes.push_back(static_cast<char>(bits >> num_bits & 0xff));
  }
  return true;
}

// Tokens by their ranks: a merge for each way in which two tokens make a third, by its rank.
Json json_of_ranks(const std::vector<std::string>& tokens, int64_t first_id,
                   const std::string& where) {
  std::unordered_map<std::string_view, size_t> ranks;
  Json vocabulary = Json::object();
  Json merges = Json::array();
  std::vector<std::string> spelled;
  for (size_t rank = 0; rank < tokens.size(); ++rank) {
    if (tokens[rank].empty() || tokens[rank].size() > kMaxTokenBytes ||
        !ranks.emplace(tokens[rank], rank).second) {
      fail(ErrorCode::kCorrupt,
           "{}: the token of rank {} is there twice, empty, or of more than {} bytes", where, rank,
           kMaxTokenBytes);
    }
    spelled.push_back(bpe::to_byte_level(tokens[rank]));
    vocabulary[spelled.back()] = first_id + static_cast<int64_t>(rank);
  }
  for (const std::string_view token : tokens) {
    std::vector<std::pair<size_t, size_t>> ways;
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = ranks.find(token.substr(0, cut)), right = ranks.find(token.substr(cut));
      if (left != ranks.end() && right != ranks.end()) {
        ways.emplace_back(left->second, right->second);
      }
    }
    std::sort(ways.begin(), ways.end());
    for (const auto& [left, right] : ways) merges.push_back({spelled[left], spelled[right]});
  }
  return tokenizer_json<Json>(std::move(vocabulary), std::move(merges), true);
}

// `tokenizers` gives an added token the id that the vocabulary has for it.
void add_special(Json& made, const std::string& text, int64_t id) {
  made["model"]["vocab"].emplace(text, id);
  made["added_tokens"].push_back(
      added_token_json<Json>({.text = text, .id = static_cast<int32_t>(id), .special = true}));
}

const Json& member(const Json& json, const char* key, const std::string& where) {
  if (!json.is_object() || !json.contains(key)) {
    fail(ErrorCode::kCorrupt, "{}: '{}' is missing: it is no tekken.json, or damaged", where, key);
  }
  return json[key];
}

int64_t number_of(const Json& json, const char* key, int64_t otherwise, const std::string& where) {
  if (!json.is_object() || !json.contains(key) || json[key].is_null()) return otherwise;
  if (!json[key].is_number_unsigned() || json[key] > 1 << 24) {
    fail(ErrorCode::kCorrupt, "{}: '{}' is {}: expected a number up to {}", where, key,
         json_text(json[key]).substr(0, 80), 1 << 24);
  }
  return json[key].get<int64_t>();
}

std::string string_of(const Json& json, const char* key, const std::string& where) {
  const Json& text = member(json, key, where);
  if (!text.is_string()) {
    fail(ErrorCode::kCorrupt, "{}: '{}' is no string: it is no tekken.json, or damaged", where,
         key);
  }
  return text.get<std::string>();
}

// The special tokens, which have the first ids. Files written until 2024 do not list them.
std::vector<std::string> tekken_specials(const Json& json, const std::string& where) {
  std::vector<std::string> specials;
  const Json& listed = json.contains("special_tokens") ? json["special_tokens"] : Json();
  if (listed.is_array()) {
    specials.resize(listed.size());
    for (const Json& token : listed) {
      const int64_t rank = number_of(token, "rank", -1, where);
      if (rank < 0 || rank >= static_cast<int64_t>(specials.size()) ||
          !specials[static_cast<size_t>(rank)].empty()) {
        fail(ErrorCode::kCorrupt, "{}: the ranks of special_tokens are not 0, 1, 2 …", where);
      }
      specials[static_cast<size_t>(rank)] = string_of(token, "token_str", where);
    }
  } else {
    for (const char* const name : kTekkenSpecials) specials.emplace_back(name);
  }
  const int64_t count = number_of(member(json, "config", where), "default_num_special_tokens",
                                  static_cast<int64_t>(specials.size()), where);
  if (count < static_cast<int64_t>(specials.size()) || count > 1 << 20) {
    fail(ErrorCode::kCorrupt, "{}: default_num_special_tokens is {}, and {} are listed", where,
         count, specials.size());
  }
  while (static_cast<int64_t>(specials.size()) < count) {
    specials.push_back(fmt::format("<SPECIAL_{}>", specials.size()));
  }
  return specials;
}

TokenizerSource read_tekken(const std::string& bytes, const std::string& where) {
  const Json json = parse_json(bytes, where);
  const Json& config = member(json, "config", where);
  const std::vector<std::string> specials = tekken_specials(json, where);
  const auto num_specials = static_cast<int64_t>(specials.size());
  const Json& vocabulary = member(json, "vocab", where);
  if (!vocabulary.is_array()) fail(ErrorCode::kCorrupt, "{}: 'vocab' is no array", where);
  const auto listed = static_cast<int64_t>(vocabulary.size());
  const int64_t count = std::min(
      listed, number_of(config, "default_vocab_size", listed + num_specials, where) - num_specials);
  std::vector<std::string> tokens;
  for (int64_t rank = 0; rank < count; ++rank) {
    const Json& token = vocabulary[static_cast<size_t>(rank)];
    std::string bytes;
    if (number_of(token, "rank", rank, where) != rank ||
        !decode_base64(string_of(token, "token_bytes", where), bytes)) {
      fail(ErrorCode::kCorrupt, "{}: token {} of 'vocab' has another rank, or no base64", where,
           rank);
    }
    tokens.push_back(std::move(bytes));
  }
  Json made = json_of_ranks(tokens, num_specials, where);
  made["pre_tokenizer"] = pre_tokenizer_json<Json>(string_of(config, "pattern", where));
  for (size_t id = 0; id < specials.size(); ++id) {
    add_special(made, specials[id], static_cast<int64_t>(id));
  }
  TokenizerSource source{.is_made = true};
  const auto bos = std::find(specials.begin(), specials.end(), "<s>");
  if (bos != specials.end()) {
    made["post_processor"] = template_json<Json>("<s>", bos - specials.begin());
    source.bos = "<s>";
  }
  if (std::find(specials.begin(), specials.end(), "</s>") != specials.end()) source.eos = "</s>";
  source.json = exact_json(made, "the tokenizer.json of " + where);
  return source;
}

std::vector<std::string> tiktoken_tokens(const std::string& text, const std::string& where) {
  std::vector<std::string> tokens;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    begin = end + 1;
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    std::string bytes;
    if (space == std::string_view::npos || !decode_base64(line.substr(0, space), bytes) ||
        line.substr(space + 1) != std::to_string(tokens.size())) {
      fail(ErrorCode::kCorrupt,
           "{}: line {} is no token in base64 with the rank {}: it is no tiktoken file, or damaged",
           where, number + 1, tokens.size());
    }
    tokens.push_back(std::move(bytes));
  }
  return tokens;
}

TokenizerSource read_tiktoken(std::string_view name, const std::string& text,
                              const std::string& where) {
  const std::vector<std::string> tokens = tiktoken_tokens(text, where);
  const TiktokenKind* const kind = tiktoken_kind(name, tokens.size());
  if (kind == nullptr) {
    fail(ErrorCode::kUnsupported,
         "{}: a tiktoken file of {} ranks, which does not hold its pattern: expected Llama 3's "
         "(128000 ranks), cl100k_base.tiktoken, o200k_base.tiktoken or qwen.tiktoken. Convert it "
         "with the pattern of its model: python -c \"from transformers.convert_slow_tokenizer "
         "import TikTokenConverter as C; C('{}', pattern=r'PATTERN', extra_special_tokens="
         "['<|endoftext|>']).converted().save('tokenizer.json')\"",
         where, tokens.size(), where);
  }
  Json made = json_of_ranks(tokens, 0, where);
  made["pre_tokenizer"] = pre_tokenizer_json<Json>(kind->pattern);
  if (kind->nfc) made["normalizer"] = {{"type", "NFC"}};
  for (const auto& [text, id] : kind->specials) {
    add_special(made, text, id);
    if (text == kind->bos) made["post_processor"] = template_json<Json>(text, id);
  }
  return {.json = exact_json(made, "the tokenizer.json of " + where),
          .bos = kind->bos,
          .eos = kind->eos,
          .is_made = true};
}

}  // namespace

TokenizerSource read_tokenizer_source(const fs::path& file, const TokenizerFolder& folder) {
  const std::string name = file.filename().string();
  if (name == "vocab.json") return read_vocabulary_source(file, folder);
  return tokenizer_source_of(name, read_file_or_object(file, kMaxTokenizerBytes), file.string());
}

TokenizerSource tokenizer_source_of(std::string_view name, const std::string& bytes,
                                    const std::string& where) {
  if (!name.ends_with(".json")) return read_tiktoken(name, bytes, where);
  if (is_tekken_name(name)) return read_tekken(bytes, where);
  return {.json = bytes};
}

bool is_tekken_name(std::string_view name) { return name.find("tekken") != std::string_view::npos; }

bool is_tiktoken(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  const size_t space = line.find(' ');
  std::string bytes;
  return space != std::string_view::npos && decode_base64(line.substr(0, space), bytes) &&
         line.substr(space + 1, 1) == "0";
}

}  // namespace skein
