// A strict reader of JSON in memory, fast where texts are long; it says yes or nothing. What it
// does not take, and what it is not sure of, is for a full parser: numbers that might overflow,
// nesting beyond 64 levels, and whatever is no JSON.
// Source  RFC 8259
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace skein {

class JsonScan {
 public:
  // `json` must be UTF-8.
  explicit JsonScan(std::string_view json) : at_(json.data()), end_(at_ + json.size()) {}

  // Puts the string at `key` of the object that is all of the text into `text`; of equal keys the
  // last one counts. False if there is none, or the text is not such an object, or for a full
  // parser to judge.
  bool find_string(std::string_view key, std::string& text);

 private:
  bool skip_value(int depth);
  bool skip_object(int depth);
  bool skip_array(int depth);
  bool skip_number();
  bool skip_digits();
  bool skip_word(std::string_view word);
  bool skip_string() { return read_string(nullptr); }
  bool read_string(std::string* text);  // appends to `text`, unless it is null
  void read_plain_code_points(std::string* text);
  bool read_escape(std::string* text);
  bool read_hex(uint32_t& code);
  bool read_code_point(std::string* text);
  void skip_space();
  bool take(char byte);
  bool next_is(char byte) const { return at_ < end_ && *at_ == byte; }

  const char* at_;
  const char* end_;
  std::string name_;  // of a member
};

}  // namespace skein
