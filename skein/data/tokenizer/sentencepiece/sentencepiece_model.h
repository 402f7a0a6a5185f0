// A SentencePiece model file, parsed and checked before libsentencepiece sees its bytes.
//
// libsentencepiece trusts the models that it loads (CVE-2026-1260: out-of-bounds reads and stack
// overflows from crafted files). Every model goes through parse_sentencepiece_model() first: sizes,
// piece lengths, types, scores, and the trie of the normalizer.
//
// Source  https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto;
//         https://protobuf.dev/programming-guides/encoding/
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

struct SentencePiece {
  enum class Type { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  std::string text;
  float score = 0;
  Type type = Type::kNormal;
};

struct SentencePieceModel {
  enum class Kind { kUnigram = 1, kBpe, kWord, kChar };
  std::vector<SentencePiece> pieces;  // the index is the id
  Kind kind = Kind::kUnigram;
  bool byte_fallback = false;
  bool whitespace_is_suffix = false;
  std::string bos_piece = "<s>", eos_piece = "</s>";  // a control piece, if it exists
  bool has_denormalizer = false;
  // Options of the normalizer:
  bool has_charsmap = false;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

// Whether the library keeps this symbol's adjacent spaces, though it removes them elsewhere.
bool keeps_extra_spaces(const SentencePieceModel& model, const SentencePiece& piece);

// The id of the control token `piece`; -1 if the model has none.
int control_id(const SentencePieceModel& model, std::string_view piece);

// Parses and checks; throws Error{kCorrupt | kUnsupported} that begins with `where`.
SentencePieceModel parse_sentencepiece_model(std::string_view bytes, const std::string& where);

// Throws if a walk down the double-array trie of `charsmap` (the `precompiled_charsmap` of a
// normalizer) could leave its array, or find more matches than libsentencepiece has room for.
void check_charsmap(std::string_view charsmap, const std::string& where);

}  // namespace skein
