#include "skein/jinja/values/printed.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "skein/jinja/values/operators.h"
#include "skein/jinja/values/text.h"

namespace skein::jinja {
namespace {

class Represent {
 public:
  explicit Represent(Budget& budget) : budget_(budget) {}

  std::string made;

  void value(const Value& value) {
    budget_.step();
    const size_t before = made.size();
    switch (value.kind()) {
      case Kind::kString:
        if (value.as_string().is_markup) made += "Markup(";
        string(value.text());
        if (value.as_string().is_markup) made += ')';
        break;
      case Kind::kSequence:
        return sequence(value.as_sequence());
      case Kind::kDict:
        return dict(value.as_dict());
      case Kind::kUndefined:
        made += "Undefined";
        break;
      default:
        made += printed(value, budget_);
    }
    budget_.make(static_cast<int64_t>(made.size() - before));
  }

 private:
  void string(std::string_view text) {
    const bool doubled = text.find('\'') != text.npos && text.find('"') == text.npos;
    const char quote = doubled ? '"' : '\'';
    made += quote;
    for (const std::string_view character : Characters(text)) {
      const char32_t code = code_of(character);
      if (code == '\n') {
        made += "\\n";
      } else if (code == '\r') {
        made += "\\r";
      } else if (code == '\t') {
        made += "\\t";
      } else if (code == '\\' || code == static_cast<char32_t>(quote)) {
        made += '\\';
        made += character;
      } else if (is_printable(code)) {
        made += character;
      } else if (code < 0x100) {
        made += fmt::format("\\x{:02x}", static_cast<uint32_t>(code));
      } else if (code < 0x10000) {
        made += fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
      } else {
        made += fmt::format("\\U{:08x}", static_cast<uint32_t>(code));
      }
    }
    made += quote;
  }

  void items(const std::vector<Value>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) made += ", ";
      value(values[i]);
    }
  }

  void sequence(const Sequence& sequence) {
    switch (sequence.flavor) {
      case Flavor::kList:
        made += '[';
        items(sequence.items);
        made += ']';
        return;
      case Flavor::kTuple:
        made += '(';
        items(sequence.items);
        made += sequence.items.size() == 1 ? ",)" : ")";
        return;
      case Flavor::kRange:
        made += fmt::format("range({}, {}", sequence.start, sequence.stop);
        made += sequence.step == 1 ? ")" : fmt::format(", {})", sequence.step);
        return;
      case Flavor::kKeys:
        made += "dict_keys([";
        break;
      case Flavor::kValues:
        made += "dict_values([";
        break;
      case Flavor::kItems:
        made += "dict_items([";
        break;
    }
    items(sequence.items);
    made += "])";
  }

  void dict(const Dict& dict) {
    made += '{';
    bool first = true;
    for (const auto& [key, entry] : dict.entries) {
      if (!first) made += ", ";
      first = false;
      value(key);
      made += ": ";
      value(entry);
    }
    made += '}';
  }

  Budget& budget_;
};

class JsonWriter {
 public:
  JsonWriter(const JsonForm& form, Budget& budget) : form_(form), budget_(budget) {}

  std::string made;

  void value(const Value& value, int level) {
    budget_.step();
    const size_t before = made.size();
    switch (value.kind()) {
      case Kind::kNone:
        made += "null";
        break;
      case Kind::kBool:
        made += value.as_bool() ? "true" : "false";
        break;
      case Kind::kInteger:
      case Kind::kBigInteger:
        made += printed(value, budget_);
        break;
      case Kind::kFloat:
        made += number(value.as_float());
        break;
      case Kind::kString:
        string(value.text());
        break;
      case Kind::kDict:
        return dict(value.as_dict(), level);
      case Kind::kSequence:
        if (value.as_sequence().flavor <= Flavor::kTuple) return list(value.as_sequence(), level);
        [[fallthrough]];
      default:
        throw Refusal(
            fmt::format("tojson: Object of type {} is not JSON serializable", type_name(value)));
    }
    budget_.make(static_cast<int64_t>(made.size() - before));
  }

 private:
  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return printed_float(value);
  }

  void unit(uint32_t code) { made += fmt::format("\\u{:04x}", code); }

  void string(std::string_view text) {
    made += '"';
    for (const std::string_view character : Characters(text)) {
      const char32_t code = code_of(character);
      switch (code) {
        case '"':
          made += "\\\"";
          continue;
        case '\\':
          made += "\\\\";
          continue;
        case '\n':
          made += "\\n";
          continue;
        case '\r':
          made += "\\r";
          continue;
        case '\t':
          made += "\\t";
          continue;
        case '\f':
          made += "\\f";
          continue;
        case '\b':
          made += "\\b";
          continue;
        default:
          break;
      }
      if (code < 0x20 || (form_.ensure_ascii && code > 0x7e && code < 0x10000)) {
        unit(code);
      } else if (form_.ensure_ascii && code >= 0x10000) {
        unit(0xd800 + ((code - 0x10000) >> 10));
        unit(0xdc00 + ((code - 0x10000) & 0x3ff));
      } else {
        made += character;
      }
    }
    made += '"';
  }

  void begin_item(bool first, int level) {
    if (!first) made += form_.item_separator;
    new_line(level);
  }
  void new_line(int level) {
    if (!form_.has_indent) return;
    made += '\n';
    budget_.make(static_cast<int64_t>(form_.indent.size()) * level);
    for (int i = 0; i < level; ++i) made += form_.indent;
  }

  void list(const Sequence& list, int level) {
    if (list.items.empty()) {
      made += "[]";
      return;
    }
    made += '[';
    for (size_t i = 0; i < list.items.size(); ++i) {
      begin_item(i == 0, level + 1);
      value(list.items[i], level + 1);
    }
    new_line(level);
    made += ']';
  }

  std::string key_text(const Value& key) {
    switch (key.kind()) {
      case Kind::kString:
        return key.text();
      case Kind::kNone:
        return "null";
      case Kind::kBool:
        return key.as_bool() ? "true" : "false";
      case Kind::kFloat:
        return number(key.as_float());
      case Kind::kInteger:
      case Kind::kBigInteger:
        return printed(key, budget_);
      default:
        throw Refusal(fmt::format("tojson: keys must be str, int, float, bool or None, not {}",
                                  type_name(key)));
    }
  }

  void dict(const Dict& dict, int level) {
    if (dict.entries.empty()) {
      made += "{}";
      return;
    }
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (form_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
        budget_.step();
        return less(a->first, b->first);
      });
    }
    made += '{';
    bool first = true;
    for (const auto* entry : entries) {
      begin_item(first, level + 1);
      first = false;
      string(key_text(entry->first));
      made += form_.key_separator;
      value(entry->second, level + 1);
    }
    new_line(level);
    made += '}';
  }

  const JsonForm& form_;
  Budget& budget_;
};

}  // namespace

std::string printed_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char scientific[40];
  const auto end = std::to_chars(scientific, scientific + sizeof scientific, value,
                                 std::chars_format::scientific);
  const std::string_view text(scientific, static_cast<size_t>(end.ptr - scientific));
  const size_t e = text.find('e');
  int exponent = 0;
  const std::string_view power = text.substr(text[e + 1] == '+' ? e + 2 : e + 1);
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  if (exponent >= -4 && exponent < 16) {
    char fixed[400];
    const auto done = std::to_chars(fixed, fixed + sizeof fixed, value, std::chars_format::fixed);
    std::string made(fixed, done.ptr);
    return made.find('.') == std::string::npos ? made + ".0" : made;
  }
  const std::string_view sign = exponent < 0 ? "-" : "+";
  return fmt::format("{}e{}{:02}", text.substr(0, e), sign, std::abs(exponent));
}

std::string printed(const Value& value, Budget& budget) {
  switch (value.kind()) {
    case Kind::kUndefined:
      refuse_strict(value);
      return "";
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.as_bool() ? "True" : "False";
    case Kind::kInteger:
      return std::to_string(value.as_integer());
    case Kind::kFloat:
      return printed_float(value.as_float());
    case Kind::kString:
      budget.make(static_cast<int64_t>(value.text().size()));
      return value.text();
    case Kind::kBigInteger:
      return value.text();
    case Kind::kSequence:
    case Kind::kDict:
      return represented(value, budget);
    default:
      throw Refusal(fmt::format(
          "a {} has no text: Python prints where it lies in memory, which is not the same twice",
          type_name(value)));
  }
}

std::string represented(const Value& value, Budget& budget) {
  Represent represent(budget);
  represent.value(value);
  return std::move(represent.made);
}

std::string json_text(const Value& value, const JsonForm& form, Budget& budget) {
  JsonWriter writer(form, budget);
  writer.value(value, 0);
  return std::move(writer.made);
}

}  // namespace skein::jinja
