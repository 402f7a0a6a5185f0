#include <fmt/format.h>

#include <algorithm>

#include "skein/jinja/library/filters.h"
#include "skein/jinja/syntax/parser.h"

namespace skein::jinja {

void Parser::argument(CallArguments& made, int& depth) {
  const auto value = [&] {
    ExpressionPtr read = expression();
    depth = std::max(depth, read->depth);
    return read;
  };
  const char* const order = "arguments by name stand behind the others, * and ** behind these";
  if (take_operator("*")) {
    if (made.star != nullptr || made.double_star != nullptr) fail_here(order);
    made.star = value();
  } else if (take_operator("**")) {
    if (made.double_star != nullptr) fail_here(order);
    made.double_star = value();
  } else if (current().kind == TokenKind::kName && ahead().is_operator("=")) {
    if (made.double_star != nullptr) fail_here(order);
    std::string name = take().text;
    take();
    for (const auto& [other, unused] : made.named) {
      if (other == name) fail_here(fmt::format("the argument '{}' is given twice", name));
    }
    made.named.emplace_back(std::move(name), value());
  } else {
    if (made.star != nullptr || made.double_star != nullptr || !made.named.empty())
      fail_here(order);
    made.positional.push_back(value());
  }
}

CallArguments Parser::arguments(int& depth) {
  CallArguments made;
  expect_operator("(");
  bool first = true;
  while (!current().is_operator(")")) {
    if (!first) {
      expect_operator(",");
      if (current().is_operator(")")) break;
    }
    first = false;
    argument(made, depth);
  }
  expect_operator(")");
  return made;
}

ExpressionPtr Parser::call(ExpressionPtr of) {
  const SourcePosition place = current().place;
  int depth = of->depth;
  CallArguments given = arguments(depth);
  ExpressionPtr made = node_of(ExpressionKind::kCall, place, std::move(of));
  made->arguments = std::move(given);
  made->depth = deeper(depth, place);
  return made;
}

// Behind the bar.
ExpressionPtr Parser::filter(ExpressionPtr of) {
  const SourcePosition place = current().place;
  const std::string name = expect_any_name("the name of a filter");
  if (current().is_operator("."))
    refuse(place, fmt::format("the filter '{}.…' is not known", name));
  const auto own = filters_ == nullptr ? FilterMap::const_iterator() : filters_->find(name);
  const bool is_own = filters_ != nullptr && own != filters_->end();
  const std::string why = is_own ? "" : why_no_filter(name);
  if (!why.empty()) refuse(place, why);
  int depth = of == nullptr ? 0 : of->depth;
  CallArguments given;
  if (current().is_operator("(")) given = arguments(depth);
  ExpressionPtr made = node_of(ExpressionKind::kFilter, place, std::move(of));
  made->name = name;
  if (is_own) made->filter = &own->second;
  made->arguments = std::move(given);
  made->depth = deeper(depth, place);
  return made;
}

ExpressionPtr Parser::test(ExpressionPtr of) {
  const SourcePosition place = take().place;  // is
  const bool negated = take_name("not");
  const SourcePosition name_place = current().place;
  const std::string name = expect_any_name("the name of a test");
  if (const std::string why = why_no_test(name); !why.empty()) refuse(name_place, why);
  int depth = of->depth;
  CallArguments given;
  const Token& next = current();
  const bool begins_value = next.kind == TokenKind::kName || next.kind == TokenKind::kString ||
                            next.kind == TokenKind::kNumber || next.is_operator("[") ||
                            next.is_operator("{");
  if (next.is_operator("(")) {
    given = arguments(depth);
  } else if (begins_value && !next.is_name("else") && !next.is_name("or") && !next.is_name("and")) {
    if (next.is_name("is")) fail_here("tests cannot be chained with is");
    const Depth guard(*this);
    ExpressionPtr value = postfix(primary());
    depth = std::max(depth, value->depth);
    given.positional.push_back(std::move(value));
  }
  ExpressionPtr made = node_of(ExpressionKind::kTest, place, std::move(of));
  made->name = name;
  made->arguments = std::move(given);
  made->depth = deeper(depth, place);
  return negated ? node_of(ExpressionKind::kNot, place, std::move(made)) : std::move(made);
}

}  // namespace skein::jinja
