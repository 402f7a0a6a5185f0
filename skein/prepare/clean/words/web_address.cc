#include "skein/prepare/clean/words/web_address.h"

#include <array>

namespace skein {
namespace {

using ClassifiedCharacter = CharacterReader::ClassifiedCharacter;

bool is_alphanumeric(char32_t code) {
  return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') ||
         (code >= 'a' && code <= 'z') || (code >= 0xa1 && code <= 0xffff);
}

class AddressMatcher {
 public:
  AddressMatcher(std::string_view word, const CharacterReader& reader)
      : begin_(word.data()), end_(word.data() + word.size()), reader_(reader) {}

  bool matches() const {
    const char* const after_scheme = skip_scheme();
    for (const char* start : {begin_, after_scheme}) {
      if (start == nullptr) continue;
      if (matches_host(start)) return true;
      // A user is anything at all, so that a host may follow any @.
      for (const char* at = start + reader_.first(start, end_).size; at < end_; ++at) {
        if (*at == '@' && at + 1 < end_ && matches_host(at + 1)) return true;
      }
    }
    return false;
  }

 private:
  // Behind `scheme://`; null: there is none, or nothing follows.
  const char* skip_scheme() const {
    const char* at = begin_;
    int num_characters = 0;
    for (; at < end_; ++num_characters) {
      const ClassifiedCharacter character = reader_.first(at, end_);
      if ((character.classes & character::kWord) == 0 && character.code != '+' &&
          character.code != '-' && character.code != '.') {
        break;
      }
      at += character.size;
    }
    if (num_characters < 2 || end_ - at <= 3) return nullptr;
    return std::string_view(at, 3) == "://" ? at + 3 : nullptr;
  }

  bool matches_host(const char* at) const { return matches_ip(at) || matches_domain(at); }

  // (label .)+ domain
  bool matches_domain(const char* at) const {
    for (;;) {
      at = skip_label(at);
      if (at == nullptr || at == end_ || *at != '.') return false;
      ++at;
      const char* const behind = skip_top_level_domain(at);
      if (behind != nullptr && matches_rest(behind)) return true;
    }
  }

  // 1 to 64 characters, of which the first and the last are no signs. Null: there is none.
  const char* skip_label(const char* at) const {
    int num_characters = 0;
    bool begins_well = false, ends_well = false;
    while (at < end_) {
      const ClassifiedCharacter character = reader_.first(at, end_);
      ends_well = is_alphanumeric(character.code);
      if (num_characters == 0) begins_well = ends_well;
      if (!ends_well && character.code != '_' && character.code != '-') {
        return num_characters > 0 && num_characters <= 64 && begins_well && last_is_alphanumeric(at)
                   ? at
                   : nullptr;
      }
      at += character.size;
      ++num_characters;
    }
    return nullptr;
  }
  bool last_is_alphanumeric(const char* behind) const {
    return is_alphanumeric(reader_.last(begin_, behind).code);
  }

  const char* skip_top_level_domain(const char* at) const {
    int num_characters = 0;
    while (at < end_) {
      const ClassifiedCharacter character = reader_.first(at, end_);
      if ((character.classes & character::kLower) == 0) break;
      at += character.size;
      ++num_characters;
    }
    return num_characters >= 2 && num_characters <= 63 ? at : nullptr;
  }

  // An IPv4 address that is not of a private network.
  bool matches_ip(const char* at) const {
    std::array<Octet, 4> octets;
    for (size_t i = 0; i < octets.size(); ++i) {
      if (i > 0 && (at == end_ || *at++ != '.')) return false;
      octets[i] = octet_at(at);
      at += octets[i].num_digits;
    }
    const auto is_within = [](const Octet& octet, int first, int last) {
      return octet.value >= first && octet.value <= last;
    };
    const bool is_address = octets[0].is_plain() && is_within(octets[0], 1, 223) &&
                            octets[1].is_short() && octets[2].is_short() && octets[3].is_plain() &&
                            is_within(octets[3], 1, 254);
    if (!is_address) return false;
    const int first = octets[0].value, second = octets[1].value;
    const bool is_private = first == 10 || first == 127 || (first == 169 && second == 254) ||
                            (first == 192 && second == 168) ||
                            (first == 172 && is_within(octets[1], 16, 31));
    return !is_private && matches_rest(at);
  }
  struct Octet {
    int num_digits = 0;
    int value = 0;
    bool begins_with_zero = false;
    bool is_plain() const { return num_digits > 0 && num_digits <= 3 && !begins_with_zero; }
    // The pattern takes 05, but neither 005 nor 256.
    bool is_short() const {
      return num_digits == 1 || num_digits == 2 || (is_plain() && value <= 255);
    }
  };
  Octet octet_at(const char* at) const {
    Octet octet;
    octet.begins_with_zero = at < end_ && *at == '0';
    for (; at < end_ && *at >= '0' && *at <= '9' && octet.num_digits < 4; ++at) {
      octet.value = 10 * octet.value + (*at - '0');
      ++octet.num_digits;
    }
    return octet;
  }

  // [:port] [(/ ? #) anything]
  bool matches_rest(const char* at) const {
    if (at < end_ && *at == ':') {
      int num_digits = 0;
      for (++at; at < end_; ++num_digits) {
        const ClassifiedCharacter character = reader_.first(at, end_);
        if ((character.classes & character::kDecimal) == 0) break;
        at += character.size;
      }
      if (num_digits < 2 || num_digits > 5) return false;
    }
    return at == end_ || *at == '/' || *at == '?' || *at == '#';
  }

  const char* begin_;
  const char* end_;
  const CharacterReader& reader_;
};

}  // namespace

bool is_web_address(std::string_view word, const CharacterReader& reader) {
  return word.find('.') != std::string_view::npos && AddressMatcher(word, reader).matches();
}

}  // namespace skein
