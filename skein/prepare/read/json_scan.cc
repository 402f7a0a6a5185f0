#include "skein/prepare/read/json_scan.h"

#include <array>
#include <bit>
#include <cstring>

namespace skein {
namespace {

constexpr int kMaxDepth = 64;
constexpr int kMaxDigits = 200;        // of a number: it stays far from what a double holds
constexpr int kMaxExponentDigits = 1;  // the same

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

// Bytes, eight at a time, whose highest bit is set where a byte is less than `limit` (1 to 0x80) or
// equal to zero.
constexpr uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;
uint64_t less_than(uint64_t bytes, uint64_t limit) {
  return (bytes - kOnes * limit) & ~bytes & kHighs;
}

// The first byte of a string that ends it, begins an escape or may not be in it.
const char* plain_end(const char* at, const char* end) {
  while (end - at >= 8) {
    uint64_t bytes;
    std::memcpy(&bytes, at, sizeof(bytes));
    // Borrows may mark bytes behind the first one that is meant, never before it.
    const uint64_t found = less_than(bytes, 0x20) | less_than(bytes ^ (kOnes * '"'), 1) |
                           less_than(bytes ^ (kOnes * '\\'), 1);
    if (found != 0) return at + std::countr_zero(found) / 8;
    at += 8;
  }
  while (at < end && *at != '"' && *at != '\\' && static_cast<uint8_t>(*at) >= 0x20) ++at;
  return at;
}
static_assert(std::endian::native == std::endian::little);

// Writes 1 to 4 bytes; returns the end.
char* write_utf8(uint32_t code, char* to) {
  const auto tail = [&](int shift) { *to++ = static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    *to++ = static_cast<char>(code);
  } else if (code < 0x800) {
    *to++ = static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    *to++ = static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    *to++ = static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
  return to;
}

// The value of a hexadecimal digit; of anything else -1.
constexpr std::array<int8_t, 256> kHexValues = [] {
  std::array<int8_t, 256> values{};
  for (int byte = 0; byte < 256; ++byte) {
    const int lower = byte | 0x20;
    values[static_cast<size_t>(byte)] =
        static_cast<int8_t>(byte >= '0' && byte <= '9'     ? byte - '0'
                            : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                                           : -1);
  }
  return values;
}();

// The number that four digits spell; negative if they are not all digits.
int32_t hex_value(const char* digits) {
  const auto value = [&](int i) -> int32_t { return kHexValues[static_cast<uint8_t>(digits[i])]; };
  const int32_t a = value(0), b = value(1), c = value(2), d = value(3);
  return (a | b | c | d) < 0 ? -1 : a << 12 | b << 8 | c << 4 | d;
}

}  // namespace

bool JsonScan::find_string(std::string_view key, std::string& text) {
  bool found = false;
  skip_space();
  if (!take('{')) return false;
  skip_space();
  if (next_is('}')) return false;
  do {
    skip_space();
    name_.clear();
    if (!read_string(&name_)) return false;
    skip_space();
    if (!take(':')) return false;
    skip_space();
    if (name_ == key) {
      text.clear();
      found = next_is('"');
      if (!(found ? read_string(&text) : skip_value(1))) return false;
    } else if (!skip_value(1)) {
      return false;
    }
    skip_space();
  } while (take(','));
  if (!take('}')) return false;
  skip_space();
  return at_ == end_ && found;
}

bool JsonScan::skip_value(int depth) {
  if (at_ == end_ || depth > kMaxDepth) return false;
  switch (*at_) {
    case '"':
      return skip_string();
    case '{':
      return skip_object(depth);
    case '[':
      return skip_array(depth);
    case 't':
      return skip_word("true");
    case 'f':
      return skip_word("false");
    case 'n':
      return skip_word("null");
    default:
      return skip_number();
  }
}

bool JsonScan::skip_object(int depth) {
  take('{');
  skip_space();
  if (take('}')) return true;
  do {
    skip_space();
    if (!next_is('"') || !skip_string()) return false;
    skip_space();
    if (!take(':')) return false;
    skip_space();
    if (!skip_value(depth + 1)) return false;
    skip_space();
  } while (take(','));
  return take('}');
}

bool JsonScan::skip_array(int depth) {
  take('[');
  skip_space();
  if (take(']')) return true;
  do {
    skip_space();
    if (!skip_value(depth + 1)) return false;
    skip_space();
  } while (take(','));
  return take(']');
}

bool JsonScan::skip_number() {
  const char* begin = at_;
  take('-');
  if (!take('0') && !skip_digits()) return false;
  if (take('.') && !skip_digits()) return false;
  if (at_ - begin > kMaxDigits) return false;
  if (!take('e') && !take('E')) return true;
  if (!take('+')) take('-');
  begin = at_;
  return skip_digits() && at_ - begin <= kMaxExponentDigits;
}

bool JsonScan::skip_digits() {
  const char* begin = at_;
  while (at_ < end_ && is_digit(*at_)) ++at_;
  return at_ > begin;
}

bool JsonScan::skip_word(std::string_view word) {
  if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

bool JsonScan::read_string(std::string* text) {
  if (!take('"')) return false;
  while (true) {
    const char* end = plain_end(at_, end_);
    if (text != nullptr) text->append(at_, end);
    at_ = end;
    if (take('"')) return true;
    if (!next_is('\\')) return false;
    read_plain_code_points(text);
    if (take('\\') && !read_escape(text)) return false;
  }
}

// A run of \uXXXX that are no surrogates: text in other scripts is mostly that.
void JsonScan::read_plain_code_points(std::string* text) {
  std::array<char, 192> bytes;
  char* to = bytes.data();
  const auto flush = [&] {
    if (text != nullptr) text->append(bytes.data(), to);
    to = bytes.data();
  };
  while (end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u') {
    const int32_t code = hex_value(at_ + 2);
    if (code < 0 || (code >= 0xd800 && code < 0xe000)) break;
    to = write_utf8(static_cast<uint32_t>(code), to);
    at_ += 6;
    if (to + 4 > bytes.data() + bytes.size()) flush();
  }
  flush();
}

bool JsonScan::read_escape(std::string* text) {
  constexpr std::string_view kEscapes = "\"\\/bfnrt", kBytes = "\"\\/\b\f\n\r\t";
  if (take('u')) return read_code_point(text);
  const size_t which = at_ < end_ ? kEscapes.find(*at_) : kEscapes.npos;
  if (which == kEscapes.npos) return false;
  ++at_;
  if (text != nullptr) *text += kBytes[which];
  return true;
}

// Behind \u: four digits, and of a surrogate the other half.
bool JsonScan::read_code_point(std::string* text) {
  uint32_t code = 0, low = 0;
  if (!read_hex(code) || (code >= 0xdc00 && code < 0xe000)) return false;
  if (code >= 0xd800 && code < 0xdc00) {
    if (!take('\\') || !take('u') || !read_hex(low) || low < 0xdc00 || low >= 0xe000) return false;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  char bytes[4];
  if (text != nullptr) text->append(bytes, write_utf8(code, bytes));
  return true;
}

bool JsonScan::read_hex(uint32_t& code) {
  const int32_t value = end_ - at_ < 4 ? -1 : hex_value(at_);
  if (value < 0) return false;
  code = static_cast<uint32_t>(value);
  at_ += 4;
  return true;
}

void JsonScan::skip_space() {
  while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
}

bool JsonScan::take(char byte) {
  if (!next_is(byte)) return false;
  ++at_;
  return true;
}

}  // namespace skein
