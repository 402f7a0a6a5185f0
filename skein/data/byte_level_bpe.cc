#include "skein/data/byte_level_bpe.h"

#include <algorithm>

#include "skein/bpe/nfc.h"
#include "skein/bpe/utf8.h"

namespace skein {

ByteLevelBpe::ByteLevelBpe(ByteLevelModel model)
    : model_(std::move(model)), pattern_(model_.pattern), merges_(model_.merges.size()) {
  for (size_t i = 0; i < model_.merges.size(); ++i) {
    const auto [left, right] = model_.merges[i];
    merges_.add(left, right, {static_cast<uint32_t>(i), model_.merged[i]});
  }
  texts_.resize(static_cast<size_t>(model_.num_ids));
  has_token_.resize(texts_.size());
  model_.vocabulary.for_each([&](std::string_view bytes, int32_t id) {
    texts_[static_cast<size_t>(id)] = bytes;
    has_token_[static_cast<size_t>(id)] = true;
    if (bytes.size() == 1) byte_ids_[static_cast<uint8_t>(bytes[0])] = id;
  });
  for (const AddedToken& token : model_.added) {
    texts_[static_cast<size_t>(token.id)] = token.special ? "" : token.text;
    has_token_[static_cast<size_t>(token.id)] = true;
    Added& added = token.normalized ? after_normalization_ : before_normalization_;
    added.tokens.push_back(token);
    if (token.normalized && model_.nfc) {  // found in what form C makes of a text
      std::string composed;
      added.tokens.back().text = bpe::to_nfc(token.text, composed, bpe::NfcOf::kUnicode9);
    }
    added.begins.set(static_cast<uint8_t>(added.tokens.back().text[0]));
    added.any = added.any || !token.special;
  }
  for (Added* added : {&before_normalization_, &after_normalization_}) {
    std::stable_sort(
        added->tokens.begin(), added->tokens.end(),
        [](const AddedToken& a, const AddedToken& b) { return a.text.size() > b.text.size(); });
  }
}

// The first token in `text`, the longest of those that begin there. One that is special is passed
// over as a whole.
ByteLevelBpe::Found ByteLevelBpe::find_added(std::string_view text, const Added& added) {
  for (size_t at = 0; at < text.size();) {
    size_t step = 1;
    if (added.begins[static_cast<uint8_t>(text[at])]) {
      const auto token = std::find_if(
          added.tokens.begin(), added.tokens.end(),
          [&](const AddedToken& each) { return text.substr(at).starts_with(each.text); });
      if (token != added.tokens.end()) {
        if (!token->special) return {&*token, at};
        step = token->text.size();
      }
    }
    at += step;
  }
  return {};
}

template <class EncodeRest>
void ByteLevelBpe::encode_around(std::string_view text, const Added& added, bpe::IdSink& out,
                                 EncodeRest&& encode_rest) {
  while (added.any) {
    const Found found = find_added(text, added);
    if (found.token == nullptr) break;
    if (found.begin > 0) encode_rest(text.substr(0, found.begin));
    out.append(&found.token->id, 1);
    text.remove_prefix(found.begin + found.token->text.size());
  }
  if (!text.empty()) encode_rest(text);
}

void ByteLevelBpe::encode_word(std::string_view word, Session& session,
                               std::vector<int32_t>& out) const {
  if (model_.ignore_merges) {
    if (const int32_t id = model_.vocabulary.find(word); id >= 0) return out.push_back(id);
  }
  session.symbols.clear();
  for (const char byte : word) session.symbols.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
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

void ByteLevelBpe::encode(std::string_view text, std::vector<int32_t>& out) const {
  auto session = sessions_.take();
  std::string valid;
  if (utf8::valid_prefix(text) < text.size()) {
    valid = utf8::replace_invalid(text);
    text = valid;
  }
  bpe::IdSink sink(out);
  encode_around(text, before_normalization_, sink, [&](std::string_view part) {
    if (model_.nfc) part = bpe::to_nfc(part, session->composed, bpe::NfcOf::kUnicode9);
    encode_around(part, after_normalization_, sink,
                  [&](std::string_view rest) { encode_words(rest, *session, sink); });
  });
}

std::string ByteLevelBpe::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) bytes += texts_.at(static_cast<size_t>(id));
  return utf8::replace_ill_formed(bytes);
}

}  // namespace skein
