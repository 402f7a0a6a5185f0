// Regular expressions of tokenizers, with the matches that `tokenizers` finds.
//
// A text is first turned into one byte a character: the number of its class, where a class is what
// no set of the expression tells apart. PCRE2 then matches bytes and knows nothing of Unicode, so
// that matches do not depend on its version; sets of any size cost the same.
//
// Errors   Error{kUnsupported} of an expression that is not read (expression_parser.h), of more
//          than 256 classes, and of one that takes more than 20 s and 20 s a MB for a text
// Threads  several may match at once, each with a Matcher of its own
// Source   https://github.com/kkos/oniguruma/blob/master/doc/RE; PCRE2, pcre2api(3), pcre2jit(3)
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "skein/bpe/unicode/code_points.h"

struct pcre2_real_code_8;

namespace skein::bpe {

struct Span {
  size_t begin, end;
};

class Matcher;

class Expression {
 public:
  explicit Expression(std::string_view source);

  const std::string& source() const { return source_; }

  // A class for each character of `text`, which is UTF-8.
  void classify(std::string_view text, std::string& classes) const;

 private:
  friend class Matcher;
  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };

  // [set]: its classes
  std::vector<std::vector<uint8_t>> make_classes(const std::vector<CodePoints>& sets);
  void make_pages(const std::vector<uint8_t>& class_of_code);
  void compile(const std::string& pattern);

  std::string source_;
  std::vector<uint16_t> pages_;                    // [code / 256]: of classes_
  std::vector<std::array<uint8_t, 256>> classes_;  // [page][code % 256]
  std::unique_ptr<pcre2_real_code_8, FreeCode> code_;
  std::array<bool, 256> begins_{};  // [class]: whether a match may begin with it
  bool may_be_empty_ = false;
};

// What one thread needs to match: memory, and how long it has been at it.
class Matcher {
 public:
  Matcher();
  ~Matcher();
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  // The matches in `classes`, in places of classes, as Oniguruma's find_iter has them: an empty one
  // never stands right behind another.
  void find_all(const Expression& expression, std::string_view classes, std::vector<Span>& found);

  // Gives the next matches the time that a text of this size may take.
  void begin_text(size_t num_bytes);

 private:
  struct State;
  bool find(const Expression& expression, std::string_view classes, size_t from, Span& found);
  bool match(const Expression& expression, std::string_view classes, size_t from, Span& found);

  std::unique_ptr<State> state_;
};

}  // namespace skein::bpe
