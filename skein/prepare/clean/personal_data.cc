#include "skein/prepare/clean/personal_data.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "skein/prepare/clean/words/character_classes.h"

namespace skein {
namespace {

constexpr size_t kNone = std::string_view::npos;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_atom(char c) {
  return is_alphanumeric(c) ||
         std::string_view("!#$%&'*+/=?^_`{|}~-").find(c) != std::string_view::npos;
}

// Text to look through, of which what was found is replaced.
class TextSearch {
 public:
  explicit TextSearch(std::string_view text) : text_(text) {}

  struct Finding {
    size_t begin = kNone, end = kNone;
    bool is_replaced = true;
  };

  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  // Whether a letter, digit or underscore ends before `i`, or begins at it.
  bool word_ends_at(size_t i) const {
    return i > 0 && (reader_.last(text_.data(), &text_[i]).classes & character::kWord) != 0;
  }
  bool word_begins_at(size_t i) const {
    return i < text_.size() &&
           (reader_.first(&text_[i], text_.data() + text_.size()).classes & character::kWord) != 0;
  }
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
  CharacterReader reader_;
};

using Finding = TextSearch::Finding;

// Behind the domain that begins at `at`; kNone: there is none.
size_t skip_domain(const TextSearch& search, size_t at) {
  size_t behind_label = kNone;  // the last one, where another one stands before it
  for (int num_labels = 0;; ++num_labels) {
    size_t end = at;
    while (is_alphanumeric(search.at(end)) || search.at(end) == '-') ++end;
    if (!is_alphanumeric(search.at(at))) return num_labels >= 2 ? behind_label : kNone;
    if (search.at(end) != '.' || search.at(end - 1) == '-') {
      while (search.at(end - 1) == '-') --end;
      return num_labels >= 1 ? end : kNone;
    }
    behind_label = end;
    at = end + 1;
  }
}

struct Octets {
  std::array<uint32_t, 4> values{};
  bool has_leading_zero = false;
};

// The digits at `at` that are a number up to 255; 0: there are none.
size_t octet_size(const TextSearch& search, size_t at) {
  size_t size = 0;
  while (size < 3 && is_digit(search.at(at + size))) ++size;
  if (size < 3) return size;
  return search.text().substr(at, 3) <= "255" ? 3 : 2;
}

Finding ipv4_at(const TextSearch& search, size_t begin, Octets& octets) {
  octets = {};
  size_t at = begin;
  for (size_t i = 0; i < 4; ++i) {
    if (i > 0 && search.at(at++) != '.') return {};
    const size_t size = octet_size(search, at);
    if (size == 0) return {};
    for (size_t j = at; j < at + size; ++j) {
      octets.values[i] = 10 * octets.values[i] + static_cast<uint32_t>(search.at(j) - '0');
    }
    octets.has_leading_zero |= size > 1 && search.at(at) == '0';
    at += size;
  }
  return {begin, at};
}

// Behind [1.2.3.4].
size_t skip_literal(const TextSearch& search, size_t at) {
  Octets octets;
  if (search.at(at) != '[') return kNone;
  const size_t end = ipv4_at(search, at + 1, octets).end;
  return end != kNone && search.at(end) == ']' ? end + 1 : kNone;
}

// The address whose @ is at `sign`, but nothing before `from`.
Finding email_at(const TextSearch& search, size_t from, size_t sign) {
  size_t begin = sign;
  while (begin > from && (is_atom(search.at(begin - 1)) || search.at(begin - 1) == '.')) {
    if (search.at(begin - 1) == '.' && (begin == sign || search.at(begin) == '.')) break;
    --begin;
  }
  for (; begin < sign; ++begin) {
    const bool is_boundary = search.word_ends_at(begin) != search.word_begins_at(begin);
    if (search.at(begin) != '.' && is_boundary) break;
  }
  if (begin == sign) return {};
  const size_t domain = sign + 1;
  const size_t end =
      search.at(domain) == '[' ? skip_literal(search, domain) : skip_domain(search, domain);
  return end == kNone ? Finding{} : Finding{begin, end};
}

Finding next_email(const TextSearch& search, size_t from) {
  for (size_t sign = from; (sign = search.text().find('@', sign)) != kNone; ++sign) {
    const Finding match = email_at(search, from, sign);
    if (match.end != kNone) return match;
  }
  return {};
}

// Private and reserved networks of IANA's registry, as network and prefix length.
bool is_public(const Octets& octets) {
  struct Network {
    uint32_t address;
    int num_bits;
  };
  constexpr std::array<Network, 14> kReserved = {{{0x00000000, 8},
                                                  {0x0a000000, 8},
                                                  {0x64400000, 10},
                                                  {0x7f000000, 8},
                                                  {0xa9fe0000, 16},
                                                  {0xac100000, 12},
                                                  {0xc0000000, 29},
                                                  {0xc00000aa, 31},
                                                  {0xc0000200, 24},
                                                  {0xc0a80000, 16},
                                                  {0xc6120000, 15},
                                                  {0xc6336400, 24},
                                                  {0xcb007100, 24},
                                                  {0xf0000000, 4}}};
  const auto& v = octets.values;
  const uint32_t address = v[0] << 24 | v[1] << 16 | v[2] << 8 | v[3];
  return std::none_of(kReserved.begin(), kReserved.end(), [&](const Network& network) {
    return (address ^ network.address) >> (32 - network.num_bits) == 0;
  });
}

Finding next_ipv4(const TextSearch& search, size_t from) {
  for (size_t at = from; (at = search.text().find('.', at)) != kNone; ++at) {
    // Of the digits before a dot, as many as there can be.
    size_t begin = at;
    while (begin > from && at - begin < 3 && is_digit(search.at(begin - 1))) --begin;
    for (; begin < at; ++begin) {
      Octets octets;
      Finding match = ipv4_at(search, begin, octets);
      if (match.end == kNone) continue;
      match.is_replaced = !octets.has_leading_zero && is_public(octets);
      return match;
    }
  }
  return {};
}

bool is_of_ipv6(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':';
}

Finding next_ipv6(const TextSearch& search, size_t from) {
  for (size_t at = from; (at = search.text().find(':', at)) != kNone;) {
    size_t begin = at, end = at;
    while (begin > from && is_of_ipv6(search.at(begin - 1))) --begin;
    while (is_of_ipv6(search.at(end))) ++end;
    at = end;
    if (end - begin > 39 || search.word_ends_at(begin) || search.word_begins_at(end)) continue;
    const std::string address(search.text().substr(begin, end - begin));
    std::array<uint8_t, 16> bytes{};
    if (inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) continue;
    const bool is_example =
        bytes[0] == 0x20 && bytes[1] == 0x01 && bytes[2] == 0x0d && bytes[3] == 0xb8;
    return {begin, end, bytes[0] >> 5 == 1 && !is_example};
  }
  return {};
}

bool is_separator(char c) { return c == ' ' || c == '-' || c == '.'; }

// Behind + and 8 to 15 digits in groups.
size_t skip_international(const TextSearch& search, size_t at) {
  if (search.at(at) != '+' || search.at(at + 1) < '1' || search.at(at + 1) > '9') return kNone;
  int num_digits = 0;
  size_t end = kNone;
  for (++at; num_digits <= 15; ++at) {
    const char c = search.at(at);
    if (is_digit(c)) {
      ++num_digits;
      end = at + 1;
      continue;
    }
    const bool is_bracket = c == '(' || c == ')';
    const bool may_go_on = is_digit(search.at(at + 1)) || search.at(at + 1) == '(' ||
                           (c == ')' && is_separator(search.at(at + 1)));
    if ((!is_separator(c) && !is_bracket) || !may_go_on) break;
  }
  return num_digits >= 8 && num_digits <= 15 ? end : kNone;
}

// Behind (ddd) ddd-dddd or ddd-ddd-dddd; the first digits of the first two groups are 2 to 9.
size_t skip_american(const TextSearch& search, size_t at) {
  const auto skip_group = [&](size_t size) {
    for (size_t i = 0; i < size; ++i, ++at) {
      const bool may_be_first = size > 3 || search.at(at) >= '2';
      if (!is_digit(search.at(at)) || (i == 0 && !may_be_first)) return false;
    }
    return true;
  };
  const bool has_brackets = search.at(at) == '(';
  if (has_brackets) ++at;
  if (!skip_group(3)) return kNone;
  if (has_brackets) {
    if (search.at(at++) != ')') return kNone;
    if (search.at(at) == ' ') ++at;
  } else if (!is_separator(search.at(at++))) {
    return kNone;
  }
  if (!skip_group(3) || !is_separator(search.at(at++)) || !skip_group(4)) return kNone;
  return at;
}

Finding next_phone(const TextSearch& search, size_t from) {
  for (size_t at = from; (at = search.text().find_first_of("+(23456789", at)) != kNone; ++at) {
    const char before = at > from ? search.at(at - 1) : ' ';
    if (search.word_ends_at(at) || before == '-' || before == '.' || before == '+') continue;
    size_t end = skip_international(search, at);
    if (end == kNone) end = skip_american(search, at);
    if (end == kNone || search.word_begins_at(end)) continue;
    const bool goes_on =
        is_separator(search.at(end)) && search.at(end) != ' ' && is_digit(search.at(end + 1));
    if (!goes_on) return {at, end};
  }
  return {};
}

// Puts `replacement` in place of all that `next` finds; true: of anything.
bool replace_all(std::string& text, Finding (*next)(const TextSearch&, size_t),
                 std::string_view replacement, int64_t& count) {
  const TextSearch search(text);
  std::string out;
  size_t kept = 0;  // all before is in `out`
  const int64_t count_before = count;
  for (size_t from = 0;;) {
    const Finding match = next(search, from);
    if (match.end == kNone) break;
    from = match.end;
    if (!match.is_replaced) continue;
    out.append(text, kept, match.begin - kept).append(replacement);
    kept = match.end;
    ++count;
  }
  if (count == count_before) return false;
  out.append(text, kept);
  text = std::move(out);
  return true;
}

}  // namespace

std::string_view replace_personal_data(std::string_view text, const PersonalData& what,
                                       PersonalDataCounts& counts, std::string& changed) {
  std::string out(text);
  bool is_changed = false;
  if (what.emails)
    is_changed |= replace_all(out, next_email, "email@example.com", counts.num_emails);
  if (what.ips) {
    is_changed |= replace_all(out, next_ipv4, "192.0.2.1", counts.num_ips);
    is_changed |= replace_all(out, next_ipv6, "2001:db8::1", counts.num_ips);
  }
  if (what.phones) is_changed |= replace_all(out, next_phone, "555-0100", counts.num_phones);
  if (!is_changed) return text;
  changed = std::move(out);
  return changed;
}

}  // namespace skein
