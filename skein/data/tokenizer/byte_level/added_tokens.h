// Added tokens in a text: which stand where, as `tokenizers` finds them.
//
// Rule    of the tokens that begin first, the longest; one that is passed over hides what it covers
// Source  https://github.com/huggingface/tokenizers: tokenizers/src/tokenizer/added_vocabulary.rs
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skein/bpe/vocabulary.h"
#include "skein/data/tokenizer/byte_level/added_token.h"

namespace skein {

enum class SpecialTokens {
  kText,  // text that spells a special token is ordinary text
  kParse  // it is the token
};

class AddedTokens {
 public:
  // `pattern`: how the token stands in a text; empty: it does not.
  void add(const AddedToken& token, std::string_view pattern);

  // Whether some may be found: without `special`, those that are not special.
  bool any(bool special) const { return special ? !tokens_.empty() : any_plain_; }

  // Whether one of them has this id.
  bool holds(int32_t id) const;

  // The first token in `text`; null: there is none.
  const AddedToken* first(std::string_view text, bool special) const {
    TokenMatch found;
    return find(text, 0, special, found) ? found.token : nullptr;
  }

  // Calls visit_text(begin, end) and visit_token(id) in order, for all of `text`.
  template <class VisitText, class VisitToken>
  void visit(std::string_view text, bool special, VisitText&& visit_text,
             VisitToken&& visit_token) const {
    size_t behind = 0;  // what was visited
    TokenMatch found;
    for (size_t from = 0; find(text, from, special, found); from = found.end) {
      size_t begin = found.begin, end = found.end;
      widen(text, *found.token, behind, begin, end);
      if (behind < begin) visit_text(behind, begin);
      visit_token(found.token->id);
      behind = end;
    }
    if (behind < text.size()) visit_text(behind, text.size());
  }

 private:
  struct TokenMatch {
    const AddedToken* token = nullptr;
    size_t begin = 0, end = 0;
  };

  bool find(std::string_view text, size_t from, bool special, TokenMatch& found) const;
  static void widen(std::string_view text, const AddedToken& token, size_t behind, size_t& begin,
                    size_t& end);

  std::vector<AddedToken> tokens_;
  bpe::Vocabulary patterns_;   // to indices of tokens_
  std::vector<size_t> sizes_;  // of patterns, the longest first
  std::bitset<256> begins_;
  bool any_plain_ = false;
};

// Of `tokens` those that are special.
AddedTokens special_of(const std::vector<AddedToken>& tokens);

}  // namespace skein
