#include "skein/data/tokenizer/sentencepiece/sentencepiece_model.h"

#include <arrow/util/utf8.h>

#include <cmath>
#include <unordered_set>

#include "skein/base/error.h"
#include "skein/base/files/lfs_pointer.h"
#include "skein/base/files/protobuf.h"

namespace skein {
namespace {

constexpr size_t kMaxPieces = size_t{1} << 22;
// libsentencepiece builds its tries recursively, one call per byte.
constexpr size_t kMaxPieceBytes = 4096;

ProtobufReader message_reader(std::string_view bytes, const std::string& where) {
  return {bytes, where + ": not a SentencePiece model"};
}

SentencePiece parse_piece(std::string_view bytes, size_t id, const std::string& where) {
  SentencePiece piece;
  ProtobufReader reader = message_reader(bytes, where);
  while (reader.next()) {
    if (reader.field() == 1) piece.text = reader.bytes();
    if (reader.field() == 2) piece.score = reader.number();
    if (reader.field() == 3) {
      if (reader.varint() < 1 || reader.varint() > 6) {
        fail(ErrorCode::kCorrupt, "{}: piece {} is of type {}: expected 1 to 6", where, id,
             reader.varint());
      }
      piece.type = static_cast<SentencePiece::Type>(reader.varint());
    }
  }
  if (piece.text.empty() || piece.text.size() > kMaxPieceBytes) {
    fail(ErrorCode::kCorrupt, "{}: piece {} has {} bytes: expected 1 to {}", where, id,
         piece.text.size(), kMaxPieceBytes);
  }
  if (!arrow::util::ValidateUTF8(piece.text)) {
    fail(ErrorCode::kCorrupt, "{}: piece {} is not UTF-8", where, id);
  }
  if (!std::isfinite(piece.score)) {
    fail(ErrorCode::kCorrupt, "{}: piece {} has score {}: expected a finite number", where, id,
         piece.score);
  }
  return piece;
}

void parse_trainer_spec(std::string_view bytes, const std::string& where,
                        SentencePieceModel& model) {
  ProtobufReader reader = message_reader(bytes, where);
  while (reader.next()) {
    if (reader.field() == 3) {
      if (reader.varint() < 1 || reader.varint() > 4) {
        fail(ErrorCode::kCorrupt, "{}: model type {}: expected 1 to 4", where, reader.varint());
      }
      model.kind = static_cast<SentencePieceModel::Kind>(reader.varint());
    }
    if (reader.field() == 24) model.whitespace_is_suffix = reader.varint() != 0;
    if (reader.field() == 35) model.byte_fallback = reader.varint() != 0;
    // An empty name stands for the default, as in libsentencepiece.
    if (reader.field() == 46 && !reader.bytes().empty()) model.bos_piece = reader.bytes();
    if (reader.field() == 47 && !reader.bytes().empty()) model.eos_piece = reader.bytes();
  }
}

void parse_normalizer_spec(std::string_view bytes, const std::string& where,
                           SentencePieceModel& model) {
  ProtobufReader reader = message_reader(bytes, where);
  while (reader.next()) {
    if (reader.field() == 2 && !reader.bytes().empty()) {
      check_charsmap(reader.bytes(), where);
      model.has_charsmap = true;
    }
    if (reader.field() == 3) model.add_dummy_prefix = reader.varint() != 0;
    if (reader.field() == 4) model.remove_extra_whitespaces = reader.varint() != 0;
    if (reader.field() == 5) model.escape_whitespaces = reader.varint() != 0;
  }
}

bool is_byte_piece(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return text.size() == 6 && text.starts_with("<0x") && is_digit(text[3]) && is_digit(text[4]) &&
         text[5] == '>';
}

void check_vocabulary(const SentencePieceModel& model, const std::string& where) {
  using Type = SentencePiece::Type;
  std::unordered_set<std::string_view> seen;
  size_t num_unknown = 0, num_bytes = 0;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const auto& [text, score, type] = model.pieces[id];
    if (!seen.insert(text).second) {
      fail(ErrorCode::kCorrupt, "{}: piece {} (`{}`) is there twice", where, id, text);
    }
    num_unknown += type == Type::kUnknown;
    num_bytes += type == Type::kByte;
    if ((type == Type::kByte) && !(model.byte_fallback && is_byte_piece(text))) {
      fail(ErrorCode::kCorrupt,
           "{}: piece {} is `{}` of type byte: expected <0x00> to <0xFF>, in a model with byte "
           "fallback",
           where, id, text);
    }
    const bool in_trie = model.kind != SentencePieceModel::Kind::kBpe || type == Type::kUserDefined;
    if (in_trie && text.find('\0') != std::string::npos) {
      fail(ErrorCode::kUnsupported, "{}: piece {} holds a null character", where, id);
    }
  }
  if (num_unknown != 1) {
    fail(ErrorCode::kCorrupt, "{}: {} pieces of type unknown: expected 1", where, num_unknown);
  }
  if (model.byte_fallback && num_bytes != 256) {
    fail(ErrorCode::kCorrupt, "{}: {} byte pieces: expected 256", where, num_bytes);
  }
}

}  // namespace

SentencePieceModel parse_sentencepiece_model(std::string_view bytes, const std::string& where) {
  arrow::util::InitializeUTF8();
  refuse_lfs_pointer(bytes, where);
  SentencePieceModel model, denormalizer;
  ProtobufReader reader = message_reader(bytes, where);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        if (model.pieces.size() == kMaxPieces) {
          fail(ErrorCode::kUnsupported, "{}: more than {} pieces", where, kMaxPieces);
        }
        model.pieces.push_back(parse_piece(reader.bytes(), model.pieces.size(), where));
        break;
      case 2:
        parse_trainer_spec(reader.bytes(), where, model);
        break;
      case 3:
        parse_normalizer_spec(reader.bytes(), where, model);
        break;
      case 5:
        parse_normalizer_spec(reader.bytes(), where, denormalizer);
        break;
      default:
        break;
    }
  }
  if (model.pieces.empty()) {
    fail(ErrorCode::kCorrupt, "{}: not a SentencePiece model: it has no pieces", where);
  }
  check_vocabulary(model, where);
  model.has_denormalizer = denormalizer.has_charsmap;
  return model;
}

bool keeps_extra_spaces(const SentencePieceModel& model, const SentencePiece& piece) {
  if (!model.remove_extra_whitespaces || piece.type != SentencePiece::Type::kUserDefined) {
    return false;
  }
  constexpr std::string_view kSpace = "\u2581";
  std::string text = piece.text;
  for (size_t at = text.find(kSpace); at != std::string::npos; at = text.find(kSpace)) {
    text.replace(at, kSpace.size(), " ");
  }
  return text.find("  ") != std::string::npos;
}

int control_id(const SentencePieceModel& model, std::string_view piece) {
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].text != piece) continue;
    return model.pieces[id].type == SentencePiece::Type::kControl ? static_cast<int>(id) : -1;
  }
  return -1;
}

}  // namespace skein
