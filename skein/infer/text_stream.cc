#include "skein/infer/text_stream.h"

#include <algorithm>
#include <utility>

namespace skein {
namespace {

constexpr size_t kContext = 8;  // tokens before a text that its beginning can depend on

// Bytes at the end of `text` that may begin `stop`.
size_t possible_beginning(std::string_view text, std::string_view stop) {
  if (stop.empty()) return 0;
  size_t length = std::min(text.size(), stop.size() - 1);
  while (!text.ends_with(stop.substr(0, length))) --length;
  return length;
}

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<int32_t> context,
                       std::vector<std::string> stops)
    : tokenizer_(tokenizer), stops_(std::move(stops)), tokens_(std::move(context)) {
  if (tokens_.size() > kContext) tokens_.erase(tokens_.begin(), tokens_.end() - kContext);
  num_shown_ = tokens_.size();
}

std::string TextStream::add(int32_t token) {
  if (is_stopped_) return "";
  tokens_.push_back(token);
  const std::string text = tokenizer_.decode(tokens_);
  if (text.ends_with("\xEF\xBF\xBD")) return "";  // U+FFFD: an incomplete character
  const size_t shown = tokenizer_.decode(std::span(tokens_).first(num_shown_)).size();
  if (text.size() <= shown) return "";
  const std::string piece = text.substr(shown);
  // A decoder may drop blanks at the beginning of a text: what is kept begins otherwise.
  if (piece.find_first_not_of(" \t\r\n") != std::string::npos) {
    tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(num_shown_));
  }
  num_shown_ = tokens_.size();
  waiting_ += piece;
  return before_stop(false);
}

std::string TextStream::finish() {
  if (is_stopped_) return "";
  const std::string text = tokenizer_.decode(tokens_);
  const size_t shown = tokenizer_.decode(std::span(tokens_).first(num_shown_)).size();
  if (text.size() > shown) waiting_ += text.substr(shown);
  num_shown_ = tokens_.size();
  return before_stop(true);
}

// Takes from what waits all that no stop text can be part of.
std::string TextStream::before_stop(bool is_end) {
  size_t found = std::string::npos, held = 0;
  for (const std::string& stop : stops_) {
    if (stop.empty()) continue;
    found = std::min(found, waiting_.find(stop));
    held = std::max(held, possible_beginning(waiting_, stop));
  }
  is_stopped_ = found != std::string::npos;
  const size_t size = is_stopped_ ? found : waiting_.size() - (is_end ? 0 : held);
  std::string text = waiting_.substr(0, size);
  waiting_.erase(0, size);
  return text;
}

}  // namespace skein
