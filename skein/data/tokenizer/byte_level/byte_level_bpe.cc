#include "skein/data/tokenizer/byte_level/byte_level_bpe.h"

#include "skein/bpe/unicode/byte_alphabet.h"
#include "skein/bpe/unicode/invalid_utf8.h"

namespace skein {

ByteLevelBpe::ByteLevelBpe(ByteLevelModel model)
    : model_(std::move(model)),
      pattern_(model_.pattern.value_or(bpe::SplitPattern::Kind::kGpt2)),
      merges_(model_.merges.size()) {
  for (size_t i = 0; i < model_.merges.size(); ++i) {
    const auto [left, right] = model_.merges[i];
    if (left >= 0) merges_.add(left, right, {static_cast<uint32_t>(i), model_.merged[i]});
  }
  texts_.resize(static_cast<size_t>(model_.num_ids));
  has_token_.resize(texts_.size());
  is_added_.resize(texts_.size());
  model_.vocabulary.for_each([&](std::string_view bytes, int32_t id) {
    texts_[static_cast<size_t>(id)] = bytes;
    has_token_[static_cast<size_t>(id)] = true;
    if (bytes.size() == 1) byte_ids_[static_cast<uint8_t>(bytes[0])] = id;
  });
  if (!model_.is_byte_level) {
    characters_.emplace(
        model_.vocabulary, model_.merges,
        bpe::CharacterOptions{.unknown_id = model_.unknown_id,
                              .fuse_unknown = model_.fuse_unknown,
                              .byte_fallback = model_.byte_fallback,
                              .cuts = !model_.ignore_merges},
        [&](int32_t id) { return id < 0 ? std::string_view() : texts_[static_cast<size_t>(id)]; });
  }
  bpe::Normalizer::Session session;
  for (const AddedToken& token : model_.added) add_token(token, session);
}

// A token that is normalized is looked for in what the normalizer makes of it.
void ByteLevelBpe::add_token(const AddedToken& token, bpe::Normalizer::Session& session) {
  std::string_view text = token.text;
  if (token.normalized) text = model_.normalizer.apply(text, session);
  std::string decoded(text);
  if (!model_.decoder) {
    decoded.clear();
    if (!bpe::from_byte_level(text, decoded)) decoded = text;
  }
  texts_[static_cast<size_t>(token.id)] = token.special ? "" : decoded;
  has_token_[static_cast<size_t>(token.id)] = true;
  is_added_[static_cast<size_t>(token.id)] = true;
  (token.normalized ? after_normalization_ : before_normalization_).add(token, text);
}

void ByteLevelBpe::encode_word(std::string_view word, Session& session,
                               std::vector<int32_t>& out) const {
  if (model_.ignore_merges) {
    if (const int32_t id = model_.vocabulary.find(word); id >= 0) return out.push_back(id);
  }
  session.symbols.clear();
  if (characters_) {
    characters_->append_symbols(word, session.symbols);
  } else {
    for (const char byte : word) session.symbols.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
  }
  merges_.apply(session.symbols);
  out.insert(out.end(), session.symbols.begin(), session.symbols.end());
}

void ByteLevelBpe::encode_words(std::string_view text, Session& session, bpe::IdSink& out) const {
  pattern_.with_end_of_word([&](auto end_of_word) {
    session.cache.append(
        text, end_of_word, out,
        [&](std::string_view word, std::vector<int32_t>& ids) { encode_word(word, session, ids); });
  });
}

// Words that lie side by side go to the cache together.
void ByteLevelBpe::encode_steps(std::string_view text, bool is_first, Session& session,
                                bpe::IdSink& out) const {
  model_.pre_tokenizer.split(text, is_first, session.words);
  const std::vector<bpe::Span>& words = session.words.words;
  const char* const all = session.words.text.data();
  for (size_t first = 0; first < words.size();) {
    size_t behind = first + 1;
    while (behind < words.size() && words[behind].begin == words[behind - 1].end) ++behind;
    size_t next = first;
    const auto end_of_word = [&](const char* at, const char*) {
      while (all + words[next].end <= at) ++next;
      const char* const end = all + words[next].end;
      return characters_ ? characters_->end_of_word(at, end) : end;
    };
    const size_t begin = words[first].begin;
    session.cache.append(
        std::string_view(all + begin, words[behind - 1].end - begin), end_of_word, out,
        [&](std::string_view word, std::vector<int32_t>& ids) { encode_word(word, session, ids); });
    first = behind;
  }
}

void ByteLevelBpe::encode_normalized(std::string_view text, bool is_first, Session& session,
                                     bpe::IdSink& out) const {
  if (model_.pattern) {
    encode_words(text, session, out);
  } else {
    encode_steps(text, is_first, session, out);
  }
}

void ByteLevelBpe::encode(std::string_view text, std::vector<int32_t>& out, bool special) const {
  auto session = sessions_.take();
  std::string valid;
  if (utf8::valid_prefix(text) < text.size()) {
    valid = utf8::replace_invalid(text);
    text = valid;
  }
  bpe::IdSink sink(out);
  const auto visit_id = [&](int32_t id) { sink.append(&id, 1); };
  before_normalization_.visit(
      text, special,
      [&](size_t begin, size_t end) {
        const std::string_view part =
            model_.normalizer.apply(text.substr(begin, end - begin), session->normalizer);
        after_normalization_.visit(
            part, special,
            [&](size_t part_begin, size_t part_end) {
              encode_normalized(part.substr(part_begin, part_end - part_begin),
                                begin == 0 && part_begin == 0, *session, sink);
            },
            visit_id);
      },
      visit_id);
}

// As `tokenizers` names it to its decoder.
std::string ByteLevelBpe::token_of(int32_t id) const {
  const std::string& text = texts_.at(static_cast<size_t>(id));
  return model_.is_byte_level && !is_added_[static_cast<size_t>(id)] ? bpe::to_byte_level(text)
                                                                     : text;
}

std::string ByteLevelBpe::decode(std::span<const int32_t> ids) const {
  if (model_.decoder) {
    std::vector<std::string> tokens;
    for (const int32_t id : ids) {
      if (std::string token = token_of(id); !token.empty()) tokens.push_back(std::move(token));
    }
    return model_.decoder->apply(std::move(tokens));
  }
  std::string bytes;
  for (const int32_t id : ids) bytes += texts_.at(static_cast<size_t>(id));
  return utf8::replace_ill_formed(bytes);
}

}  // namespace skein
