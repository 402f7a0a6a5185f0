// The text of tokens that come one by one.
//
// Pieces   a character whose bytes are incomplete waits, and so does what may be the beginning of a
//          stop text. Together the pieces are the decoded tokens up to the first stop text
// Cost     of a token that of decoding those since the last complete character, twice
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/data/tokenizer/tokenizer.h"

namespace skein {

class TextStream {
 public:
  // `context`: the tokens before; their last ones decide whether the text begins with a space.
  TextStream(const Tokenizer& tokenizer, std::vector<int32_t> context,
             std::vector<std::string> stops = {});

  // The text that is certain now; empty once is_stopped().
  std::string add(int32_t token);
  // What waited still.
  std::string finish();
  // Text waits that add() has not given.
  bool holds_text() const { return !waiting_.empty() || num_shown_ < tokens_.size(); }
  // A stop text was found.
  bool is_stopped() const { return is_stopped_; }

 private:
  std::string before_stop(bool is_end);

  const Tokenizer& tokenizer_;
  const std::vector<std::string> stops_;
  // The last tokens: of the first num_shown_ the text is known.
  std::vector<int32_t> tokens_;
  size_t num_shown_ = 0;
  std::string waiting_;
  bool is_stopped_ = false;
};

}  // namespace skein
