#include "skein/data/tokenizer/sentencepiece/sentencepiece_bpe.h"

#include <algorithm>
#include <map>

#include "skein/base/error.h"
#include "skein/bpe/unicode/invalid_utf8.h"

namespace skein {
namespace {

using Type = SentencePiece::Type;

constexpr char32_t kSpace = 0x2581;  // how pieces spell a space
constexpr std::string_view kSpaceText = "\u2581";
constexpr std::string_view kUnknownText = " \u2047 ";

char32_t code_of(utf8::Character character) {
  return character.code == ' ' ? kSpace : character.code;
}

// One space for several, none at the ends: what remove_extra_whitespaces does.
std::string without_extra_spaces(std::string_view text) {
  std::string trimmed;
  for (const char c : text) {
    if (c != ' ' || (!trimmed.empty() && trimmed.back() != ' ')) trimmed.push_back(c);
  }
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view space : {std::string_view(" "), kSpaceText}) {
      if (!trimmed.ends_with(space)) continue;
      trimmed.resize(trimmed.size() - space.size());
      again = true;
    }
  }
  return trimmed;
}

}  // namespace

bool SentencePieceBpe::can_encode(const SentencePieceModel& model) {
  return model.kind == SentencePieceModel::Kind::kBpe && model.escape_whitespaces &&
         !model.whitespace_is_suffix && !model.has_charsmap && !model.has_denormalizer &&
         std::none_of(model.pieces.begin(), model.pieces.end(), [&](const SentencePiece& piece) {
           return piece.type == Type::kUnused || keeps_extra_spaces(model, piece);
         });
}

SentencePieceBpe::SentencePieceBpe(const SentencePieceModel& model) : model_(model) {
  for (size_t id = 0; id < model_.pieces.size(); ++id) {
    const SentencePiece& piece = model_.pieces[id];
    const auto number = static_cast<int32_t>(id);
    if (piece.type == Type::kUnknown) unknown_id_ = number;
    if (piece.type == Type::kByte) {
      byte_ids_.at(std::stoul(piece.text.substr(3, 2), nullptr, 16)) = number;  // <0x41>
    }
    if (piece.type == Type::kUserDefined) {
      user_symbols_.emplace_back(piece.text, number);
      begins_user_symbol_.set(static_cast<uint8_t>(piece.text[0]));
      if (piece.text.starts_with(kSpaceText)) begins_user_symbol_.set(' ');
    }
  }
  std::stable_sort(user_symbols_.begin(), user_symbols_.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  add_merges();
}

void SentencePieceBpe::add_merges() {
  std::unordered_map<std::string_view, int32_t> symbols;
  std::map<float, uint32_t, std::greater<>> ranks;  // pieces of equal score have equal rank
  for (size_t id = 0; id < model_.pieces.size(); ++id) {
    const SentencePiece& piece = model_.pieces[id];
    if (piece.type != Type::kNormal) continue;
    symbols.emplace(piece.text, static_cast<int32_t>(id));
    ranks.emplace(piece.score, 0);
  }
  uint32_t rank = 0;
  for (auto& [score, its_rank] : ranks) its_rank = rank++;

  for (const SentencePiece& piece : model_.pieces) {
    if (piece.type != Type::kNormal) continue;
    const char* const end = piece.text.data() + piece.text.size();
    char32_t left = utf8::kInvalid;
    for (const char* at = piece.text.data(); at < end;) {
      const utf8::Character character = utf8::decode(at, end);
      const std::string_view text(at, static_cast<size_t>(character.size));
      if (!characters_.contains(character.code)) {
        const auto found = symbols.find(text);
        if (found == symbols.end()) lone_characters_.emplace_back(text);
        characters_[character.code] =
            found != symbols.end()
                ? found->second
                : static_cast<int32_t>(model_.pieces.size() + lone_characters_.size() - 1);
      }
      if (left != utf8::kInvalid) {
        joined_.add(static_cast<int32_t>(left), static_cast<int32_t>(character.code), {0, 0});
        const char32_t a = left == kSpace ? ' ' : left;
        const char32_t b = character.code == kSpace ? ' ' : character.code;
        if (a < 128 && b < 128) joined_ascii_[a].set(b);
      }
      left = character.code;
      at += character.size;
    }
  }
  const auto symbol_of = [&](std::string_view text) {
    if (const auto found = symbols.find(text); found != symbols.end()) return found->second;
    const utf8::Character first = utf8::decode(text.data(), text.data() + text.size());
    return static_cast<size_t>(first.size) == text.size() ? characters_.at(first.code) : -1;
  };
  for (const auto& [text, id] : symbols) {
    const uint32_t its_rank = ranks.at(model_.pieces[static_cast<size_t>(id)].score);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      if (utf8::is_continuation(text[cut])) continue;
      const int32_t left = symbol_of(text.substr(0, cut)), right = symbol_of(text.substr(cut));
      if (left >= 0 && right >= 0) merges_.add(left, right, {its_rank, id});
    }
  }
}

bool SentencePieceBpe::is_joined(char32_t left, char32_t right) const {
  return joined_.find(static_cast<int32_t>(left), static_cast<int32_t>(right)).rank !=
         bpe::Merges::kNone;
}

const char* SentencePieceBpe::end_of_word(const char* at, const char* end) const {
  for (;;) {
    auto left = static_cast<uint8_t>(*at);
    if (left < 128) {
      for (++at; at < end; ++at) {
        const auto right = static_cast<uint8_t>(*at);
        if (right >= 128) break;
        if (!joined_ascii_[left][right]) return at;
        left = right;
      }
      if (at == end || !is_joined(left == ' ' ? kSpace : left, utf8::decode(at, end).code)) {
        return at;
      }
    } else {
      const utf8::Character character = utf8::decode(at, end);
      at += character.size;
      if (at == end || !is_joined(character.code, code_of(utf8::decode(at, end)))) return at;
    }
  }
}

// The bytes of the longest symbol that begins at `at`, or 0.
size_t SentencePieceBpe::user_symbol_at(const char* at, const char* end, int32_t& id) const {
  for (const auto& [symbol, its_id] : user_symbols_) {
    const char* here = at;
    for (std::string_view rest = symbol; here < end;) {
      if (*here == ' ' && rest.starts_with(kSpaceText)) {
        rest.remove_prefix(kSpaceText.size());
      } else if (*here == rest[0] && *here != ' ') {
        rest.remove_prefix(1);
      } else {
        break;
      }
      ++here;
      if (rest.empty()) {
        id = its_id;
        return static_cast<size_t>(here - at);
      }
    }
  }
  return 0;
}

void SentencePieceBpe::append_unknown(std::string_view character, std::vector<int32_t>& out) const {
  if (!model_.byte_fallback) return out.push_back(unknown_id_);
  for (const char byte : character) out.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
}

void SentencePieceBpe::encode_word(std::string_view word, Session& session,
                                   std::vector<int32_t>& out) const {
  std::vector<int32_t>& symbols = session.symbols;
  symbols.clear();
  const char* const end = word.data() + word.size();
  for (const char* at = word.data(); at < end;) {
    const utf8::Character character = utf8::decode(at, end);
    const auto found = characters_.find(code_of(character));
    if (found == characters_.end()) {  // no piece has it, so it is a word of its own
      return append_unknown(*at == ' ' ? kSpaceText : word, out);
    }
    symbols.push_back(found->second);
    at += character.size;
  }
  merges_.apply(symbols);
  const auto num_pieces = static_cast<int32_t>(model_.pieces.size());
  for (const int32_t symbol : symbols) {
    if (symbol < num_pieces) {
      out.push_back(symbol);
    } else {
      append_unknown(lone_characters_[static_cast<size_t>(symbol - num_pieces)], out);
    }
  }
}

void SentencePieceBpe::encode_words(std::string_view text, Session& session,
                                    bpe::IdSink& out) const {
  session.cache.append(
      text, [&](const char* at, const char* end) { return end_of_word(at, end); }, out,
      [&](std::string_view word, std::vector<int32_t>& ids) { encode_word(word, session, ids); });
}

std::string_view SentencePieceBpe::normalize(std::string_view text, bool with_prefix,
                                             std::string& held) const {
  if (utf8::valid_prefix(text) < text.size()) text = held = utf8::replace_invalid(text);
  if (model_.remove_extra_whitespaces) {
    const bool is_blank = text.find_first_not_of(' ') == std::string_view::npos;
    text = held = is_blank ? "" : without_extra_spaces(text);
  }
  if (text.empty() || !with_prefix || !model_.add_dummy_prefix) return text;
  if (text.data() == held.data()) return held.insert(0, " ");
  return held.assign(" ").append(text);
}

void SentencePieceBpe::encode(std::string_view text, std::vector<int32_t>& out) const {
  auto session = sessions_.take();
  encode_normalized(normalize(text, true, session->text), *session, out);
}

void SentencePieceBpe::encode_normalized(std::string_view text, std::vector<int32_t>& out) const {
  encode_normalized(text, *sessions_.take(), out);
}

void SentencePieceBpe::encode_normalized(std::string_view text, Session& session,
                                         std::vector<int32_t>& out) const {
  if (text.empty()) return;
  const size_t begin = out.size();
  {
    bpe::IdSink sink(out);
    const char* const end = text.data() + text.size();
    const char* plain = text.data();  // begins what has no user-defined symbol
    for (const char* at = plain; at < end && !user_symbols_.empty();) {
      int32_t id = 0;
      size_t size = 0;
      if (begins_user_symbol_[static_cast<uint8_t>(*at)]) size = user_symbol_at(at, end, id);
      if (size == 0) {
        at += utf8::decode(at, end).size;
        continue;
      }
      encode_words({plain, static_cast<size_t>(at - plain)}, session, sink);
      sink.append(&id, 1);
      at += size;
      plain = at;
    }
    encode_words({plain, static_cast<size_t>(end - plain)}, session, sink);
  }
  if (model_.byte_fallback) return;
  // Neighbouring unknown characters are one unknown token.
  const auto from = out.begin() + static_cast<ptrdiff_t>(begin);
  out.erase(std::unique(from, out.end(),
                        [&](int32_t a, int32_t b) { return a == unknown_id_ && b == unknown_id_; }),
            out.end());
}

std::string SentencePieceBpe::decode(std::span<const int32_t> ids, std::string text) const {
  std::string bytes;
  bool is_start = text.empty(), saw_prefix = false;
  const auto flush_bytes = [&] {
    text += utf8::replace_invalid(bytes);
    bytes.clear();
  };
  for (const int32_t id : ids) {
    const SentencePiece& piece = model_.pieces.at(static_cast<size_t>(id));
    if (piece.type == Type::kByte) {
      bytes.push_back(static_cast<char>(std::stoul(piece.text.substr(3, 2), nullptr, 16)));
      continue;
    }
    flush_bytes();
    if (saw_prefix || !text.empty()) is_start = false;
    if (piece.type == Type::kControl) continue;
    if (piece.type == Type::kUnknown) {
      text += kUnknownText;
      continue;
    }
    std::string_view rest = piece.text;
    if (is_start && (model_.add_dummy_prefix || model_.remove_extra_whitespaces) &&
        rest.starts_with(kSpaceText)) {
      rest.remove_prefix(kSpaceText.size());
      saw_prefix = !model_.remove_extra_whitespaces;
    }
    while (!rest.empty()) {
      const size_t space = rest.find(kSpaceText);
      text += rest.substr(0, space);
      if (space == std::string_view::npos) break;
      text.push_back(' ');
      rest.remove_prefix(space + kSpaceText.size());
    }
  }
  flush_bytes();
  return text;
}

}  // namespace skein
