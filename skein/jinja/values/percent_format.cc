// printf-style formatting of Python: '%s, %5.2f' % values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "skein/jinja/values/operators.h"
#include "skein/jinja/values/printed.h"
#include "skein/jinja/values/text.h"

namespace skein::jinja {
namespace {

constexpr int kWidest = 10'000;

struct Conversion {
  std::optional<std::string> key;
  bool left = false, sign = false, space = false, zero = false, alternative = false;
  int width = 0;
  int precision = -1;
  char letter = 's';
};

class Formatter {
 public:
  Formatter(std::string_view format, const Value& values, Budget& budget)
      : format_(format), values_(values), budget_(budget) {}

  std::string run() {
    while (at_ < format_.size()) {
      const size_t percent = std::min(format_.find('%', at_), format_.size());
      made_ += format_.substr(at_, percent - at_);
      at_ = percent;
      if (at_ < format_.size()) convert(conversion());
      budget_.step();
    }
    const bool tuple = is_tuple();
    const size_t given = tuple ? values_.as_sequence().items.size() : 1;
    if (!takes_keys() && used_ < given) {
      throw Refusal("not all arguments converted during string formatting");
    }
    budget_.make(static_cast<int64_t>(made_.size()));
    return std::move(made_);
  }

 private:
  bool is_tuple() const {
    return values_.is(Kind::kSequence) && values_.as_sequence().flavor == Flavor::kTuple;
  }

  // What has subscripts, and is neither text nor a tuple, need not be used.
  bool takes_keys() const {
    return values_.is(Kind::kDict) || values_.is_undefined() ||
           (values_.is(Kind::kSequence) && !is_tuple() &&
            values_.as_sequence().flavor <= Flavor::kRange);
  }

  char next() {
    if (at_ >= format_.size()) throw Refusal("incomplete format");
    return format_[at_++];
  }

  int number_at(char first) {
    int number = 0;
    if (first == '*') return static_cast<int>(integer_of(argument(), "* wants int"));
    --at_;
    while (at_ < format_.size() && format_[at_] >= '0' && format_[at_] <= '9') {
      number = std::min(number * 10 + (format_[at_++] - '0'), kWidest + 1);
    }
    return number;
  }

  Conversion conversion() {
    Conversion found;
    ++at_;  // the %
    char c = next();
    if (c == '(') {
      const size_t end = format_.find(')', at_);
      if (end == std::string_view::npos) throw Refusal("incomplete format key");
      found.key = std::string(format_.substr(at_, end - at_));
      at_ = end + 1;
      c = next();
    }
    for (;; c = next()) {
      if (c == '-')
        found.left = true;
      else if (c == '+')
        found.sign = true;
      else if (c == ' ')
        found.space = true;
      else if (c == '#')
        found.alternative = true;
      else if (c == '0')
        found.zero = true;
      else
        break;
    }
    if (c == '*' || (c >= '1' && c <= '9')) {
      found.width = number_at(c);
      c = next();
    }
    if (c == '.') {
      c = next();
      found.precision = 0;
      if (c == '*' || (c >= '0' && c <= '9')) {
        found.precision = number_at(c);
        c = next();
      }
    }
    while (c == 'l' || c == 'h' || c == 'L') c = next();
    found.letter = c;
    if (std::abs(found.width) > kWidest || found.precision > kWidest) {
      throw Refusal(fmt::format("a width of more than {} characters", kWidest));
    }
    return found;
  }

  Value argument() {
    if (is_tuple()) {
      const auto& items = values_.as_sequence().items;
      if (used_ >= items.size()) throw Refusal("not enough arguments for format string");
      return items[used_++];
    }
    if (used_ > 0) throw Refusal("not enough arguments for format string");
    ++used_;
    return values_;
  }

  Value value_of(const Conversion& conversion) {
    if (!conversion.key) return argument();
    if (!values_.is(Kind::kDict)) throw Refusal("format requires a mapping");
    const Value* found = values_.as_dict().find(*conversion.key);
    if (found == nullptr)
      throw Refusal(fmt::format("the format's key '{}' is not there", *conversion.key));
    return *found;
  }

  void pad(std::string text, const Conversion& conversion, bool is_number) {
    const int64_t missing = conversion.width - count_characters(text);
    if (missing <= 0) {
      made_ += text;
    } else if (conversion.left) {
      made_ += text + std::string(static_cast<size_t>(missing), ' ');
    } else if (conversion.zero && is_number) {
      const size_t sign = text[0] == '-' || text[0] == '+' || text[0] == ' ' ? 1 : 0;
      made_ +=
          text.substr(0, sign) + std::string(static_cast<size_t>(missing), '0') + text.substr(sign);
    } else {
      made_ += std::string(static_cast<size_t>(missing), ' ') + text;
    }
  }

  static std::string with_sign(std::string text, bool negative, const Conversion& conversion) {
    return (negative ? "-" : conversion.sign ? "+" : conversion.space ? " " : "") + text;
  }

  void integer(const Value& value, const Conversion& conversion) {
    int64_t number = 0;
    const bool decimal =
        conversion.letter == 'd' || conversion.letter == 'i' || conversion.letter == 'u';
    if (value.is(Kind::kFloat) && decimal) {
      if (!(std::abs(value.as_float()) < 9.2e18)) throw Refusal("a number is too large for %d");
      number = static_cast<int64_t>(value.as_float());
    } else if (value.is_integer()) {
      number = value.as_integer();
    } else {
      need_defined(value);
      throw Refusal(fmt::format("%{} format: a real number is required, not {}", conversion.letter,
                                type_name(value)));
    }
    const uint64_t size =
        number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    std::string digits = decimal                    ? fmt::format("{}", size)
                         : conversion.letter == 'x' ? fmt::format("{:x}", size)
                         : conversion.letter == 'X' ? fmt::format("{:X}", size)
                                                    : fmt::format("{:o}", size);
    if (static_cast<int>(digits.size()) < conversion.precision) {
      digits.insert(0, static_cast<size_t>(conversion.precision) - digits.size(), '0');
    }
    if (conversion.alternative && !decimal) throw Refusal("# in a format is not supported");
    pad(with_sign(digits, number < 0, conversion), conversion, true);
  }

  void real(const Value& value, const Conversion& conversion) {
    if (!value.is_number()) {
      need_defined(value);
      throw Refusal(fmt::format("must be real number, not {}", type_name(value)));
    }
    const double number = value.as_float();
    if (!std::isfinite(number)) {
      std::string text = std::isnan(number) ? "nan" : "inf";
      if (conversion.letter < 'a') text = upper(text);
      return pad(with_sign(text, std::signbit(number) && !std::isnan(number), conversion),
                 conversion, true);
    }
    const std::string format =
        fmt::format("%{}.*{}", conversion.alternative ? "#" : "", conversion.letter);
    const int precision = conversion.precision < 0 ? 6 : conversion.precision;
    std::string digits(static_cast<size_t>(precision) + 400, '\0');
    // `format` is made of letters that are known.
    const int size =
        std::snprintf(digits.data(), digits.size(), format.c_str(), precision,  // NOLINT
                      std::abs(number));
    digits.resize(static_cast<size_t>(size));
    pad(with_sign(digits, std::signbit(number), conversion), conversion, true);
  }

  void character(const Value& value, const Conversion& conversion) {
    std::string text;
    if (value.is_string() && value.as_string().characters() == 1) {
      text = value.text();
    } else {
      const int64_t code = integer_of(value, "%c");
      if (code < 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
        throw Refusal("%c arg not in range(0x110000)");
      }
      append_code(text, static_cast<char32_t>(code));
    }
    pad(std::move(text), conversion, false);
  }

  void convert(const Conversion& conversion) {
    if (conversion.letter == '%') {
      made_ += '%';
      return;
    }
    static constexpr std::string_view kLetters = "srdiuxXofFeEgGc";
    if (kLetters.find(conversion.letter) == std::string_view::npos) {
      throw Refusal(fmt::format("unsupported format character '{}'", conversion.letter));
    }
    const Value value = value_of(conversion);
    switch (conversion.letter) {
      case 's':
      case 'r': {
        std::string text =
            conversion.letter == 's' ? printed(value, budget_) : represented(value, budget_);
        if (conversion.precision >= 0) text.resize(offset_of(text, conversion.precision));
        return pad(std::move(text), conversion, false);
      }
      case 'c':
        return character(value, conversion);
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
        return real(value, conversion);
      default:
        return integer(value, conversion);
    }
  }

  std::string_view format_;
  const Value& values_;
  Budget& budget_;
  size_t at_ = 0;
  size_t used_ = 0;
  std::string made_;
};

}  // namespace

std::string percent_formatted(std::string_view format, const Value& values, Budget& budget) {
  return Formatter(format, values, budget).run();
}

}  // namespace skein::jinja
