// Text of a corpus, which stays where it is while this lives: of an object in a store, what nobody
// holds may be given back at any time (objects/cache.h). Text of a mapped file needs no
// keeping, and costs nothing.
//
// Threads  an object: one at a time
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "skein/objects/cache.h"

namespace skein {

class HeldText {
 public:
  HeldText() = default;
  explicit HeldText(std::string_view text, ObjectHold hold = {})
      : text_(text), hold_(std::move(hold)) {}

  // A view of a temporary would outlive what keeps it.
  std::string_view view() const& { return text_; }
  std::string_view view() const&& = delete;
  operator std::string_view() const& { return text_; }  // NOLINT: it is one, as long as it lives
  operator std::string_view() const&& = delete;

  std::string str() const { return std::string(text_); }
  size_t size() const { return text_.size(); }
  bool empty() const { return text_.empty(); }
  bool operator==(std::string_view other) const { return text_ == other; }

 private:
  std::string_view text_;
  ObjectHold hold_;
};

}  // namespace skein
