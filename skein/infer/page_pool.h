// Which pages of the cache belong to which text, and which texts share them.
//
// Shared   a page that is full is known by the tokens of its text up to its end: a text that begins
//          with the same tokens uses it, and reads what follows alone. A page that nobody uses any
//          more keeps what it holds until it is needed for another text, the oldest first
// Scores   of the tokens of a page are kept with it, and are those of any text that begins alike
// Threads  one at a time
// Cost     of a text of n tokens O(n) to begin, O(pages) to end
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "skein/infer/token_score.h"

namespace skein {

// The pages of one text, in order.
struct TextPages {
  std::vector<int32_t> pages;
  int64_t num_shared = 0;  // positions that another text has read
};

// Of the first `num_tokens` of a text, without lists of the likeliest; none before the token that
// was asked for.
struct KnownScores {
  int64_t num_tokens = 0;
  std::vector<TokenScore> scores;
};

class PagePool {
 public:
  PagePool(int64_t num_pages, int64_t page_size);

  // Pages for a text of up to `num_positions` that begins with `tokens`. At most `max_shared` of
  // its positions are taken from other texts. Nothing: too few pages are free, or a page that it
  // would share is being read just now.
  std::optional<TextPages> take(std::span<const int32_t> tokens, int64_t num_positions,
                                int64_t max_shared);
  // The text has read its first `num_positions` of those that it began with: the pages that they
  // fill may be shared.
  void note_read(const TextPages& text, int64_t num_positions);
  void give_back(const TextPages& text);

  // What is known of the scores of a text from its token `from` on, of whole pages. Nothing: a text
  // is just reading the next of them.
  std::optional<KnownScores> known_scores(std::span<const int32_t> tokens, int64_t from) const;
  // Of the text's token with that number, among those that it began with.
  void note_score(const TextPages& text, int64_t token, const TokenScore& score);

  int64_t num_free() const { return static_cast<int64_t>(unused_.size()); }  // used by no text
  int64_t num_pages() const { return static_cast<int64_t>(pages_.size()); }
  int64_t page_size() const { return page_size_; }

 private:
  // What a page holds: its tokens, behind those of the page with that serial number (0: none).
  // Numbers are not used again, so that a page whose predecessor is gone is never found.
  using Content = std::pair<int64_t, std::vector<int32_t>>;
  struct Page {
    int users = 0;
    bool is_read = false;  // all its positions are
    int64_t serial = 0;    // 0: others cannot find it
    std::map<Content, int32_t>::iterator content;
    std::list<int32_t>::iterator place;             // in unused_, where there are no users
    std::vector<std::optional<TokenScore>> scores;  // of its tokens; empty: none is known
  };
  // The pages of other texts that a text would share; false: one of them is being read.
  bool find_shared(std::span<const int32_t> tokens, int64_t most,
                   std::vector<int32_t>& found) const;
  // Null: it is none that can be found.
  const Page* find(int64_t serial_before, std::span<const int32_t> tokens, int64_t number) const;
  void use(int32_t page);
  void forget(Page& page);

  const int64_t page_size_;
  std::vector<Page> pages_;
  std::list<int32_t> unused_;  // the first is taken first
  std::map<Content, int32_t> by_content_;
  int64_t last_serial_ = 0;
};

}  // namespace skein
