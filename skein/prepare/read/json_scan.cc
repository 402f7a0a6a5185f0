#include "skein/prepare/read/json_scan.h"

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

void append_utf8(uint32_t code, std::string& text) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
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
    if (!take('\\') || !read_escape(text)) return false;
  }
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
  if (text != nullptr) append_utf8(code, *text);
  return true;
}

bool JsonScan::read_hex(uint32_t& code) {
  if (end_ - at_ < 4) return false;
  code = 0;
  for (const char* digits_end = at_ + 4; at_ < digits_end; ++at_) {
    const char lower = static_cast<char>(*at_ | 0x20);
    if (!is_digit(*at_) && (lower < 'a' || lower > 'f')) return false;
    code = code * 16 + static_cast<uint32_t>(is_digit(*at_) ? *at_ - '0' : lower - 'a' + 10);
  }
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
