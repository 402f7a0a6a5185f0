// A template as a tree: what the parser makes and the renderer walks. Immutable once it is made.
//
// Each node knows how deep the tree below it is, so that no walk over it goes deeper than the
// parser allows.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "skein/jinja/syntax/lexer.h"
#include "skein/jinja/values/operators.h"
#include "skein/jinja/values/value.h"

namespace skein::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr star;         // *sequence
  ExpressionPtr double_star;  // **mapping
};

enum class ExpressionKind : uint8_t {
  kConstant,  // constant
  kName,      // name
  kList,
  kTuple,      // parts
  kDict,       // parts: key, value, key, value, …
  kAttribute,  // parts[0].name
  kItem,       // parts[0][parts[1]]
  kSlice,      // parts[0][parts[1] : parts[2] : parts[3]]; an absent bound is null
  kCall,       // parts[0](arguments)
  kFilter,     // parts[0] | name(arguments); in {% filter %} and {% set x | … %} parts[0] is null
  kTest,       // parts[0] is name(arguments)
  kNot,
  kNegative,
  kPositive,  // parts[0]
  kAnd,
  kOr,           // parts[0], parts[1]
  kBinary,       // parts[0] operators[0] parts[1]
  kConcat,       // parts, as text
  kCompare,      // parts[0] operators[0] parts[1] operators[1] parts[2] …
  kConditional,  // parts[1] if parts[0] else parts[2], which may be null
};

struct Expression {
  ExpressionKind kind;
  SourcePosition place;
  int depth = 1;
  std::string name;
  Value constant;
  std::vector<ExpressionPtr> parts;
  std::vector<Operator> operators;
  CallArguments arguments;
  // Of a filter that is not jinja2's own.
  const FilterMap::mapped_type* filter = nullptr;
};

// What is assigned to: a name, a namespace's value, or several of them.
struct Target {
  SourcePosition place;
  std::string name;
  std::string attribute;      // of a namespace
  std::vector<Target> parts;  // of a tuple
  bool is_tuple = false;
};

struct Statement;
using Body = std::vector<std::unique_ptr<Statement>>;

enum class StatementKind : uint8_t {
  kText,         // text
  kPrint,        // expressions
  kIf,           // expressions: a condition a branch; bodies: one a branch, and else's
  kFor,          // for target in expressions[0] if expressions[1]; bodies: the loop's and else's
  kSet,          // target = expressions[0]
  kSetBlock,     // target = bodies[0], through the filter expressions[0] where there is one
  kWith,         // targets = expressions; bodies[0]
  kMacro,        // name(parameters): bodies[0]
  kCallBlock,    // expressions[0], a call, with caller(parameters): bodies[0]
  kFilterBlock,  // bodies[0] through expressions[0]
  kGeneration,   // bodies[0], the assistant's words
  kBreak,
  kContinue,
};

struct Parameter {
  std::string name;
  ExpressionPtr otherwise;  // null: none
};

struct Statement {
  StatementKind kind;
  SourcePosition place;
  std::string name;  // of a macro
  std::string text;
  std::vector<ExpressionPtr> expressions;
  Target target;
  std::vector<Target> targets;
  std::vector<Parameter> parameters;
  std::vector<Body> bodies;
  // Of a macro's body: whether it names `caller`, `varargs`, `kwargs`, which it then has.
  bool has_caller = false, has_varargs = false, has_kwargs = false;
};

}  // namespace skein::jinja
