#include "skein/prepare/read/json_scan.h"

#include <array>
#include <bit>
#include <cstring>

namespace skein {
namespace {

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

// Sixteen bytes, which any x86-64 or Arm core compares at once: what lies between two escapes is
// too short for more.
using Bytes [[gnu::vector_size(16)]] = uint8_t;
constexpr size_t kBytes = sizeof(Bytes);
static_assert(std::endian::native == std::endian::little);

// The index of the first byte that is not zero; kBytes: all are.
size_t first_set(Bytes bytes) {
  uint64_t halves[2];
  std::memcpy(halves, &bytes, kBytes);
  if (halves[0] != 0) return static_cast<size_t>(std::countr_zero(halves[0])) / 8;
  return halves[1] != 0 ? 8 + static_cast<size_t>(std::countr_zero(halves[1])) / 8 : kBytes;
}

// What a backslash and this byte stand for; 0: nothing, or more bytes tell.
constexpr std::array<char, 256> kEscaped = [] {
  std::array<char, 256> escaped{};
  constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
  for (size_t i = 0; i < kNames.size(); ++i) {
    escaped[static_cast<uint8_t>(kNames[i])] = kValues[i];
  }
  return escaped;
}();

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

bool JsonScan::find_string(std::span<const std::string> path, std::string& buffer,
                           std::string_view& text) {
  const size_t room = static_cast<size_t>(end_ - at_) + kBytes;  // whole vectors are stored
  if (buffer.size() < room) buffer.resize(room);
  to_ = buffer.data();
  StringSearch all{buffer, text};
  skip_space();
  if (!next_is('{') || !search(path, all)) return false;
  skip_space();
  return at_ == end_ && all.found;
}

bool JsonScan::search(std::span<const std::string> path, StringSearch& search) {
  take('{');
  skip_space();
  if (take('}')) return true;
  const bool is_last = path.size() == 1;
  do {
    skip_space();
    char* name = to_;
    if (!read_string()) return false;
    const bool is_wanted = std::string_view(name, static_cast<size_t>(to_ - name)) == path.front();
    to_ = is_wanted && is_last ? search.buffer.data() : name;
    skip_space();
    if (!take(':')) return false;
    skip_space();
    if (is_wanted) search.found = is_last && next_is('"');
    if (is_wanted && search.found) {
      is_text_ = true;
      if (!read_string()) return false;
      is_text_ = false;
      search.text = {search.buffer.data(), static_cast<size_t>(to_ - search.buffer.data())};
    } else if (is_wanted && !is_last && next_is('{')) {
      if (!this->search(path.subspan(1), search)) return false;
    } else if (!skip_value()) {
      return false;
    }
    skip_space();
  } while (take(','));
  return take('}');
}

// Of any nesting: what is open is kept beside the text, not on the stack.
bool JsonScan::skip_value() {
  open_.clear();
  while (true) {
    if (take('{')) {
      skip_space();
      if (!next_is('}')) {
        open_ += '}';
        if (!skip_key()) return false;
        continue;
      }
      take('}');
    } else if (take('[')) {
      skip_space();
      if (!next_is(']')) {
        open_ += ']';
        continue;
      }
      take(']');
    } else if (!skip_plain_value()) {
      return false;
    }
    if (!skip_to_next()) return false;
    if (open_.empty()) return true;
  }
}

// Behind a value in open_: closes what ends there, up to where the next value begins.
bool JsonScan::skip_to_next() {
  while (!open_.empty()) {
    skip_space();
    if (take(',')) {
      skip_space();
      return open_.back() == ']' || skip_key();
    }
    if (!take(open_.back())) return false;
    open_.pop_back();
  }
  return true;
}

bool JsonScan::skip_key() {
  if (!next_is('"') || !skip_string()) return false;
  skip_space();
  if (!take(':')) return false;
  skip_space();
  return true;
}

bool JsonScan::skip_plain_value() {
  if (at_ == end_) return false;
  switch (*at_) {
    case '"':
      return skip_string();
    case 't':
      return skip_word("true");
    case 'f':
      return skip_word("false");
    case 'n':
      return skip_word("null");
    case 'N':
      return skip_word("NaN");
    case 'I':
      return skip_word("Infinity");
    default:
      return skip_number();
  }
}

bool JsonScan::skip_number() {
  if (take('-') && next_is('I')) return skip_word("Infinity");
  if (!take('0') && !skip_digits()) return false;
  if (take('.') && !skip_digits()) return false;
  if (!take('e') && !take('E')) return true;
  if (!take('+')) take('-');
  return skip_digits();
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

bool JsonScan::skip_string() {
  char* to = to_;
  const bool is_string = read_string();
  to_ = to;
  return is_string;
}

bool JsonScan::read_string() {
  if (!take('"')) return false;
  while (true) {
    read_plain();
    if (take('"')) return true;
    if (!take('\\') || !read_escape()) return false;
  }
}

// Copies all before the byte that ends a string, begins an escape or may not be in it.
void JsonScan::read_plain() {
  Bytes all{};
  size_t count = kBytes;
  while (count == kBytes && static_cast<size_t>(end_ - at_) >= kBytes) {
    Bytes bytes;
    std::memcpy(&bytes, at_, kBytes);
    std::memcpy(to_, &bytes, kBytes);
    all |= bytes;
    count = first_set(Bytes((bytes == '"') | (bytes == '\\') | (bytes < 0x20)));
    at_ += count;
    to_ += count;
  }
  is_ascii_ &= first_set(all & 0x80) == kBytes;
  if (count < kBytes) return;
  for (; at_ < end_ && *at_ != '"' && *at_ != '\\' && static_cast<uint8_t>(*at_) >= 0x20; ++at_) {
    is_ascii_ &= static_cast<uint8_t>(*at_) < 0x80;
    *to_++ = *at_;
  }
}

// Behind a backslash.
bool JsonScan::read_escape() {
  if (at_ == end_) return false;
  const char escaped = kEscaped[static_cast<uint8_t>(*at_)];
  if (escaped != 0) {
    *to_++ = escaped;
    ++at_;
    return true;
  }
  if (!take('u') || !read_code_point()) return false;
  read_plain_code_points();
  return true;
}

// A run of \uXXXX that are no surrogates: text in other scripts is mostly that.
void JsonScan::read_plain_code_points() {
  while (end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u') {
    const int32_t code = hex_value(at_ + 2);
    if (code < 0 || (code >= 0xd800 && code < 0xe000)) return;
    to_ = write_utf8(static_cast<uint32_t>(code), to_);
    at_ += 6;
  }
}

// Behind \u: four digits, and of a surrogate the other half.
bool JsonScan::read_code_point() {
  uint32_t code = 0, low = 0;
  if (!read_hex(code)) return false;
  if (code >= 0xd800 && code < 0xe000) {
    if (code < 0xdc00 && read_low_surrogate(low)) {
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (!is_text_ || mends_) {
      code = 0xfffd;
      is_mended_ |= is_text_;
    } else {
      return false;
    }
  }
  to_ = write_utf8(code, to_);
  return true;
}

bool JsonScan::read_low_surrogate(uint32_t& code) {
  const char* begin = at_;
  if (take('\\') && take('u') && read_hex(code) && code >= 0xdc00 && code < 0xe000) return true;
  at_ = begin;
  return false;
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
