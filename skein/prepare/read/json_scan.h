// A strict reader of JSON in memory, fast where texts are long; it says yes or nothing. What it
// does not take is for a full parser, which says what is wrong.
// NaN, Infinity and -Infinity are numbers here, as Python writes them, and numbers and nesting have
// any size. Halves of surrogate pairs that stand alone matter in the text alone.
// Source  RFC 8259
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace skein {

class JsonScan {
 public:
  // `json` may be any bytes. `mends`: a half of a surrogate pair that stands alone in the text
  // becomes U+FFFD.
  explicit JsonScan(std::string_view json, bool mends = false)
      : at_(json.data()), end_(at_ + json.size()), mends_(mends) {}

  // Finds the string at the key `path` of the object that is all of the text, or, of several keys,
  // the string at the last one in the objects at those before; of equal keys the last one counts.
  // False if there is none, or the text is not such an object, or for a full parser to judge.
  // `buffer` grows to the size of the text, and `text` lies in it.
  bool find_string(std::span<const std::string> path, std::string& buffer, std::string_view& text);

  // Whether all bytes that were read are ASCII; if not, what was found may not be UTF-8.
  bool is_ascii() const { return is_ascii_; }
  bool is_mended() const { return is_mended_; }

 private:
  // What find_string() searches: an object that begins here.
  struct StringSearch {
    std::string& buffer;
    std::string_view& text;
    bool found = false;
  };
  bool search(std::span<const std::string> path, StringSearch& search);
  bool skip_value();
  bool skip_to_next();
  bool skip_key();
  bool skip_plain_value();
  bool skip_number();
  bool skip_digits();
  bool skip_word(std::string_view word);
  bool skip_string();
  bool read_string();  // to to_
  void read_plain();
  bool read_escape();
  void read_plain_code_points();
  bool read_code_point();
  bool read_hex(uint32_t& code);
  bool read_low_surrogate(uint32_t& code);
  void skip_space();
  bool take(char byte);
  bool next_is(char byte) const { return at_ < end_ && *at_ == byte; }

  const char* at_;
  const char* end_;
  // Where strings go. They are never longer than their JSON, so there is always room.
  char* to_ = nullptr;
  std::string open_;      // the brackets that end what skip_value() is in
  bool is_text_ = false;  // the string that is read is the one that is wanted
  bool is_ascii_ = true;
  bool mends_, is_mended_ = false;
};

}  // namespace skein
