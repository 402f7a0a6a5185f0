#include "skein/data/tokenizer/token_ends.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "skein/bpe/unicode/invalid_utf8.h"
#include "skein/data/tokenizer/byte_level/added_tokens.h"
#include "skein/data/tokenizer/tokenizer.h"

namespace skein {
namespace {

constexpr size_t kMostWays = 16;
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

bool is_space(char byte) { return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r'; }

class Layer {
 public:
  Layer(const Tokenizer& tokenizer, SpecialTokens special, std::string_view text)
      : tokenizer_(tokenizer), parses_(special == SpecialTokens::kParse), text_(text) {
    std::vector<int32_t> ids;
    tokenizer_.encode("a", ids);
    if (ids.empty()) return;
    anchor_ = {ids.back()};
    anchor_text_ = tokenizer_.decode(anchor_);
  }

  std::optional<std::vector<size_t>> lay(std::span<const int32_t> ids) {
    std::vector<size_t> firsts = {0, 1};  // of each token's ways in ways_, behind the start
    for (const int32_t id : ids) {
      const size_t begin = firsts[firsts.size() - 2], end = firsts.back();
      first_of_token_ = end;
      for (size_t from = begin; from < end; ++from) add_ways(id, from);
      if (ways_.size() == end) return std::nullopt;
      firsts.push_back(ways_.size());
    }
    size_t at = firsts[firsts.size() - 2];
    while (at < ways_.size() && ways_[at].end != text_.size()) ++at;
    if (at == ways_.size()) return std::nullopt;
    std::vector<size_t> ends(ids.size());
    for (size_t i = ids.size(); i > 0; --i) {
      ends[i - 1] = ways_[at].end;
      at = ways_[at].from;
    }
    return ends;
  }

 private:
  // A place where a token may end, and the way of the token before it.
  struct Way {
    size_t end = 0;
    size_t from = 0;
    size_t num_guesses = 0;  // the fewer, the likelier
  };
  struct TokenText {
    std::string text;
    bool is_cut = false;  // it holds parts of characters
  };

  const TokenText& piece(int32_t id) {
    const auto [found, is_new] = pieces_.try_emplace(id);
    TokenText& piece = found->second;
    if (!is_new) return piece;
    anchor_.resize(anchor_text_.empty() ? 0 : 1);
    anchor_.push_back(id);
    piece.text = tokenizer_.decode(anchor_);
    if (piece.text.starts_with(anchor_text_)) piece.text.erase(0, anchor_text_.size());
    piece.is_cut = piece.text.find(kReplacement) != std::string::npos;
    return piece;
  }

  void add(size_t end, size_t from, bool is_guess = false) {
    const size_t num_guesses = ways_[from].num_guesses + (is_guess ? 1 : 0);
    for (size_t i = first_of_token_; i < ways_.size(); ++i) {
      if (ways_[i].end != end) continue;
      if (num_guesses < ways_[i].num_guesses) ways_[i] = {end, from, num_guesses};
      return;
    }
    if (ways_.size() - first_of_token_ < kMostWays) ways_.push_back({end, from, num_guesses});
  }

  void add_ways(int32_t id, size_t from) {
    const size_t begin = ways_[from].end;
    const TokenText& said = piece(id);
    const std::string_view rest = text_.substr(begin);
    const size_t before = ways_.size();
    // Of a text that begins with blanks, the first may be the tokenizer's.
    if (said.text.starts_with(' ') && rest.starts_with(std::string_view(said.text).substr(1))) {
      add(begin + said.text.size() - 1, from, begin > 0);
    }
    if (rest.starts_with(said.text) && !said.text.empty()) add(begin + said.text.size(), from);
    if (said.is_cut) add_cut(said.text, begin, from);
    if (said.text.empty()) return add_special(id, begin, from);
    if (ways_.size() > before) return;
    // An added token may swallow the white space before it, or that behind the last one.
    const size_t blanks = std::min(rest.find_first_not_of(" \n\t\r"), rest.size());
    if (rest.substr(blanks).starts_with(said.text))
      add(begin + blanks + said.text.size(), from, true);
  }

  void add_cut(const std::string& said, size_t begin, size_t from) {
    const size_t most = std::min(said.size(), text_.size() - begin);
    for (size_t size = 1; size <= most; ++size) {
      const std::string_view part = text_.substr(begin, size);
      if (utf8::replace_ill_formed(part) == said) add(begin + size, from);
    }
  }

  void add_special(int32_t id, size_t begin, size_t from) {
    const AddedToken* token =
        parses_ ? tokenizer_.special_tokens().first(text_.substr(begin), true) : nullptr;
    if (token == nullptr || token->id != id) return;
    const size_t at = text_.find(token->text, begin);
    if (at == text_.npos || !std::all_of(text_.begin() + static_cast<int64_t>(begin),
                                         text_.begin() + static_cast<int64_t>(at), is_space)) {
      return;
    }
    size_t end = at + token->text.size();
    while (token->rstrip && end < text_.size() && is_space(text_[end])) ++end;
    add(end, from);
  }

  const Tokenizer& tokenizer_;
  const bool parses_;
  std::string_view text_;
  std::vector<int32_t> anchor_;
  std::string anchor_text_;
  std::unordered_map<int32_t, TokenText> pieces_;
  std::vector<Way> ways_ = {{}};
  size_t first_of_token_ = 1;  // in ways_
};

}  // namespace

std::optional<std::vector<size_t>> token_ends(const Tokenizer& tokenizer, SpecialTokens special,
                                              std::string_view text, std::span<const int32_t> ids) {
  return Layer(tokenizer, special, text).lay(ids);
}

}  // namespace skein
