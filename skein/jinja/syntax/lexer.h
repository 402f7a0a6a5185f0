// A template's source as tokens, as jinja2's lexer cuts it: whitespace control (-, +), trim_blocks
// and lstrip_blocks, raw blocks and comments are done with here.
//
// Errors   Error{kInvalid, "NAME:LINE:COLUMN: ..."}; columns count characters, from 1
// Source   jinja2 3.1.6, lexer.py
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/error.h"
#include "skein/jinja/values/value.h"

namespace skein::jinja {

struct SourcePosition {
  int line = 1;
  int column = 1;
};

enum class TokenKind : uint8_t {
  kData,  // text between tags
  kVariableBegin,
  kVariableEnd,  // {{ }}
  kBlockBegin,
  kBlockEnd,  // {% %}
  kName,
  kString,
  kNumber,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // data, a name, an operator; of a string, what it spells
  Value number;
  SourcePosition place;

  bool is_operator(std::string_view symbol) const {
    return kind == TokenKind::kOperator && text == symbol;
  }
  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

// Filters beside jinja2's own, by name; they throw Refusal.
using FilterMap =
    std::map<std::string, std::function<Value(const Value& value, const Arguments& arguments)>>;

struct Syntax {
  bool trim_blocks = true;
  bool lstrip_blocks = true;
  bool keep_trailing_newline = false;
  std::shared_ptr<const FilterMap> filters;  // null: none
};

// The end is a token of kind kEnd. `name` is what errors call the template.
std::vector<Token> tokens_of(std::string_view source, const std::string& name,
                             const Syntax& syntax);

// Throws Error{code, "NAME:LINE:COLUMN: WHY"}.
[[noreturn]] void fail_at(ErrorCode code, const std::string& name, SourcePosition place,
                          const std::string& why);

}  // namespace skein::jinja
