#include <fmt/format.h>

#include <algorithm>

#include "skein/jinja/syntax/parser.h"

namespace skein::jinja {
namespace {

constexpr int kMaxTree = 400;

}  // namespace

int Parser::deeper(int depth, SourcePosition place) const {
  if (depth >= kMaxTree) {
    fail_at(ErrorCode::kInvalid, name_, place,
            fmt::format("an expression of more than {} levels", kMaxTree));
  }
  return depth + 1;
}

ExpressionPtr Parser::node(ExpressionKind kind, SourcePosition place,
                           std::vector<ExpressionPtr> parts) {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->place = place;
  int depth = 0;
  for (const auto& part : parts) {
    if (part != nullptr) depth = std::max(depth, part->depth);
  }
  made->depth = deeper(depth, place);
  made->parts = std::move(parts);
  return made;
}

// A tuple where there is a comma. `end`: a name behind which it ends, also after a comma.
ExpressionPtr Parser::tuple(bool conditional, bool empty_is_tuple, std::string_view end) {
  const SourcePosition place = current().place;
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  for (;;) {
    if (!parts.empty()) expect_operator(",");
    const TokenKind kind = current().kind;
    if (kind == TokenKind::kVariableEnd || kind == TokenKind::kBlockEnd ||
        current().is_operator(")") || (!end.empty() && current().is_name(end))) {
      break;
    }
    parts.push_back(conditional ? expression() : any_or());
    if (!current().is_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!parts.empty()) return std::move(parts[0]);
    if (!empty_is_tuple)
      fail_here(fmt::format("expected an expression, found {}", described(current())));
  }
  return node(ExpressionKind::kTuple, place, std::move(parts));
}

ExpressionPtr Parser::expression() {
  const Depth depth(*this);
  const SourcePosition place = current().place;
  ExpressionPtr value = any_or();
  while (take_name("if")) {
    ExpressionPtr condition = any_or();
    ExpressionPtr otherwise = take_name("else") ? expression() : nullptr;
    value = node_of(ExpressionKind::kConditional, place, std::move(condition), std::move(value),
                    std::move(otherwise));
  }
  return value;
}

ExpressionPtr Parser::any_or() {
  const SourcePosition place = current().place;
  ExpressionPtr left = all_and();
  while (take_name("or")) left = node_of(ExpressionKind::kOr, place, std::move(left), all_and());
  return left;
}

ExpressionPtr Parser::all_and() {
  const SourcePosition place = current().place;
  ExpressionPtr left = any_not();
  while (take_name("and")) left = node_of(ExpressionKind::kAnd, place, std::move(left), any_not());
  return left;
}

ExpressionPtr Parser::any_not() {
  const SourcePosition place = current().place;
  if (!take_name("not")) return comparison();
  const Depth depth(*this);
  return node_of(ExpressionKind::kNot, place, any_not());
}

ExpressionPtr Parser::comparison() {
  const SourcePosition place = current().place;
  std::vector<ExpressionPtr> parts;
  std::vector<Operator> operators;
  parts.push_back(sum());
  static const std::pair<std::string_view, Operator> kSymbols[] = {
      {"==", Operator::kEqual},     {"!=", Operator::kNotEqual}, {"<", Operator::kLess},
      {"<=", Operator::kLessEqual}, {">", Operator::kGreater},   {">=", Operator::kGreaterEqual}};
  for (;;) {
    const auto* found =
        std::find_if(std::begin(kSymbols), std::end(kSymbols),
                     [&](const auto& row) { return current().is_operator(row.first); });
    if (found != std::end(kSymbols)) {
      take();
      operators.push_back(found->second);
    } else if (take_name("in")) {
      operators.push_back(Operator::kIn);
    } else if (current().is_name("not") && ahead().is_name("in")) {
      take(), take();
      operators.push_back(Operator::kNotIn);
    } else {
      break;
    }
    parts.push_back(sum());
  }
  if (operators.empty()) return std::move(parts[0]);
  ExpressionPtr made = node(ExpressionKind::kCompare, place, std::move(parts));
  made->operators = std::move(operators);
  return made;
}

ExpressionPtr Parser::sum() {
  const SourcePosition place = current().place;
  ExpressionPtr left = concatenation();
  while (current().is_operator("+") || current().is_operator("-")) {
    const Operator op = take().text == "+" ? Operator::kAdd : Operator::kSubtract;
    left = node_of(ExpressionKind::kBinary, place, std::move(left), concatenation());
    left->operators = {op};
  }
  return left;
}

ExpressionPtr Parser::concatenation() {
  const SourcePosition place = current().place;
  std::vector<ExpressionPtr> parts;
  parts.push_back(product());
  while (take_operator("~")) parts.push_back(product());
  if (parts.size() == 1) return std::move(parts[0]);
  return node(ExpressionKind::kConcat, place, std::move(parts));
}

ExpressionPtr Parser::product() {
  const SourcePosition place = current().place;
  ExpressionPtr left = power();
  static const std::pair<std::string_view, Operator> kSymbols[] = {{"*", Operator::kMultiply},
                                                                   {"/", Operator::kDivide},
                                                                   {"//", Operator::kFloorDivide},
                                                                   {"%", Operator::kModulo}};
  for (;;) {
    const auto* found =
        std::find_if(std::begin(kSymbols), std::end(kSymbols),
                     [&](const auto& row) { return current().is_operator(row.first); });
    if (found == std::end(kSymbols)) return left;
    take();
    left = node_of(ExpressionKind::kBinary, place, std::move(left), power());
    left->operators = {found->second};
  }
}

ExpressionPtr Parser::power() {
  const SourcePosition place = current().place;
  ExpressionPtr left = unary(true);
  while (take_operator("**")) {
    left = node_of(ExpressionKind::kBinary, place, std::move(left), unary(true));
    left->operators = {Operator::kPower};
  }
  return left;
}

ExpressionPtr Parser::unary(bool with_filter) {
  const Depth depth(*this);
  const SourcePosition place = current().place;
  ExpressionPtr made;
  if (take_operator("-")) {
    made = node_of(ExpressionKind::kNegative, place, unary(false));
  } else if (take_operator("+")) {
    made = node_of(ExpressionKind::kPositive, place, unary(false));
  } else {
    made = primary();
  }
  made = postfix(std::move(made));
  return with_filter ? filters_and_tests(std::move(made)) : std::move(made);
}

ExpressionPtr Parser::primary() {
  const Token token = current();
  switch (token.kind) {
    case TokenKind::kName: {
      take();
      const std::string& name = token.text;
      ExpressionPtr made = node(ExpressionKind::kConstant, token.place, {});
      if (name == "true" || name == "True" || name == "false" || name == "False") {
        made->constant = Value::boolean(name == "true" || name == "True");
      } else if (name == "none" || name == "None") {
        made->constant = Value::none();
      } else {
        made->kind = ExpressionKind::kName;
        made->name = name;
        if (macro_ != nullptr) {
          macro_->has_caller |= name == "caller";
          macro_->has_varargs |= name == "varargs";
          macro_->has_kwargs |= name == "kwargs";
        }
      }
      return made;
    }
    case TokenKind::kString: {
      std::string text;
      while (current().kind == TokenKind::kString) text += take().text;
      ExpressionPtr made = node(ExpressionKind::kConstant, token.place, {});
      made->constant = Value::string(std::move(text));
      return made;
    }
    case TokenKind::kNumber: {
      take();
      ExpressionPtr made = node(ExpressionKind::kConstant, token.place, {});
      made->constant = token.number;
      return made;
    }
    default:
      break;
  }
  if (take_operator("(")) {
    ExpressionPtr made = tuple(true, true);
    expect_operator(")");
    return made;
  }
  if (token.is_operator("[")) return list();
  if (token.is_operator("{")) return dict();
  fail_here(fmt::format("expected an expression, found {}", described(token)));
}

ExpressionPtr Parser::list() {
  const SourcePosition place = take().place;
  std::vector<ExpressionPtr> parts;
  while (!current().is_operator("]")) {
    if (!parts.empty()) expect_operator(",");
    if (current().is_operator("]")) break;
    parts.push_back(expression());
  }
  expect_operator("]");
  return node(ExpressionKind::kList, place, std::move(parts));
}

ExpressionPtr Parser::dict() {
  const SourcePosition place = take().place;
  std::vector<ExpressionPtr> parts;
  while (!current().is_operator("}")) {
    if (!parts.empty()) expect_operator(",");
    if (current().is_operator("}")) break;
    parts.push_back(expression());
    expect_operator(":");
    parts.push_back(expression());
  }
  expect_operator("}");
  return node(ExpressionKind::kDict, place, std::move(parts));
}

ExpressionPtr Parser::postfix(ExpressionPtr of) {
  for (;;) {
    if (current().is_operator(".") || current().is_operator("[")) {
      of = subscript(std::move(of));
    } else if (current().is_operator("(")) {
      of = call(std::move(of));
    } else {
      return of;
    }
  }
}

ExpressionPtr Parser::filters_and_tests(ExpressionPtr of) {
  for (;;) {
    if (current().is_operator("|")) {
      take();
      of = filter(std::move(of));
    } else if (current().is_name("is")) {
      of = test(std::move(of));
    } else if (current().is_operator("(")) {
      of = call(std::move(of));
    } else {
      return of;
    }
  }
}

ExpressionPtr Parser::subscript(ExpressionPtr of) {
  const SourcePosition place = current().place;
  if (take().text == ".") {
    const Token name = take();
    if (name.kind == TokenKind::kName) {
      ExpressionPtr made = node_of(ExpressionKind::kAttribute, place, std::move(of));
      made->name = name.text;
      return made;
    }
    if (name.kind != TokenKind::kNumber || !name.number.is(Kind::kInteger)) {
      fail_at(ErrorCode::kInvalid, name_, name.place, "expected a name or a number behind the dot");
    }
    ExpressionPtr index = node(ExpressionKind::kConstant, name.place, {});
    index->constant = name.number;
    return node_of(ExpressionKind::kItem, place, std::move(of), std::move(index));
  }
  ExpressionPtr index = current().is_operator(":") ? nullptr : expression();
  if (current().is_operator(":")) return slice(std::move(of), std::move(index));
  if (current().is_operator(",")) refuse(place, "an index of several parts is not supported");
  expect_operator("]");
  return node_of(ExpressionKind::kItem, place, std::move(of), std::move(index));
}

ExpressionPtr Parser::slice(ExpressionPtr of, ExpressionPtr start) {
  const SourcePosition place = take().place;  // the first colon
  const auto bound = [&]() -> ExpressionPtr {
    return current().is_operator(":") || current().is_operator("]") ? nullptr : expression();
  };
  ExpressionPtr stop = bound();
  ExpressionPtr step = take_operator(":") ? bound() : nullptr;
  expect_operator("]");
  return node_of(ExpressionKind::kSlice, place, std::move(of), std::move(start), std::move(stop),
                 std::move(step));
}

}  // namespace skein::jinja
