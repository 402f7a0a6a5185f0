#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "skein/jinja/syntax/parser.h"

namespace skein::jinja {
namespace {

constexpr int kMaxNestedCalls = 120;

constexpr std::array<std::string_view, 10> kRefused = {"include", "import",     "from",  "extends",
                                                       "block",   "autoescape", "trans", "do",
                                                       "debug",   "pluralize"};

}  // namespace

Parser::Depth::Depth(Parser& parser) : parser_(parser) {
  if (++parser.depth_ > kMaxNestedCalls) {
    --parser.depth_;
    parser.fail_here(fmt::format("nested deeper than {} levels", kMaxNestedCalls));
  }
}

void Parser::fail_here(const std::string& why) const {
  fail_at(ErrorCode::kInvalid, name_, current().place, why);
}

void Parser::refuse(SourcePosition place, const std::string& why) const {
  fail_at(ErrorCode::kUnsupported, name_, place, why);
}

std::string Parser::described(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "text";
    case TokenKind::kVariableBegin:
      return "'{{'";
    case TokenKind::kVariableEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kNumber:
      return "a number";
    case TokenKind::kEnd:
      return "the end of the template";
    default:
      return fmt::format("'{}'", token.text);
  }
}

bool Parser::take_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  take();
  return true;
}

bool Parser::take_operator(std::string_view symbol) {
  if (!current().is_operator(symbol)) return false;
  take();
  return true;
}

void Parser::expect_operator(std::string_view symbol) {
  if (!take_operator(symbol)) {
    fail_here(fmt::format("expected '{}', found {}", symbol, described(current())));
  }
}

void Parser::expect_name(std::string_view name) {
  if (!take_name(name)) {
    fail_here(fmt::format("expected '{}', found {}", name, described(current())));
  }
}

std::string Parser::expect_any_name(const char* what) {
  if (current().kind != TokenKind::kName) {
    fail_here(fmt::format("expected {}, found {}", what, described(current())));
  }
  return take().text;
}

void Parser::expect_block_end() {
  if (current().kind != TokenKind::kBlockEnd) {
    fail_here(fmt::format("expected '%}}', found {}", described(current())));
  }
  take();
}

Body Parser::parse() { return body({}); }

// Up to a tag that `ends` names, whose name is then the current token.
Body Parser::body(const std::vector<std::string_view>& ends) {
  Body made;
  for (;;) {
    const Token& token = current();
    if (token.kind == TokenKind::kEnd) {
      if (ends.empty()) return made;
      fail_here(fmt::format("the template ends, and {{% {} %}} is missing", ends.back()));
    }
    if (token.kind == TokenKind::kData) {
      auto text = this->made(StatementKind::kText);
      text->text = take().text;
      made.push_back(std::move(text));
    } else if (token.kind == TokenKind::kVariableBegin) {
      take();
      auto print = this->made(StatementKind::kPrint);
      print->expressions.push_back(tuple(true, false));
      if (current().kind != TokenKind::kVariableEnd) {
        fail_here(fmt::format("expected '}}}}', found {}", described(current())));
      }
      take();
      made.push_back(std::move(print));
    } else {
      take();  // {%
      const bool ended = std::any_of(ends.begin(), ends.end(),
                                     [&](std::string_view end) { return current().is_name(end); });
      if (ended) return made;
      made.push_back(statement());
      expect_block_end();
    }
  }
}

Body Parser::inner_body(std::string_view end) {
  take_operator(":");
  expect_block_end();
  Body made = body({end});
  take();
  return made;
}

std::unique_ptr<Statement> Parser::made(StatementKind kind) {
  auto made = std::make_unique<Statement>();
  made->kind = kind;
  made->place = current().place;
  return made;
}

std::unique_ptr<Statement> Parser::statement() {
  const Depth depth(*this);
  const Token token = current();
  if (token.kind != TokenKind::kName) {
    fail_here(fmt::format("expected the name of a tag, found {}", described(token)));
  }
  const std::string& name = token.text;
  if (name == "if") return if_statement();
  if (name == "for") return for_statement();
  if (name == "set") return set_statement();
  if (name == "with") return with_statement();
  if (name == "macro") return macro_statement();
  if (name == "call") return call_statement();
  if (name == "filter") return filter_statement();
  if (name == "generation") return generation_statement();
  if (name == "print") return print_statement();
  if (name == "break") return loop_control(StatementKind::kBreak);
  if (name == "continue") return loop_control(StatementKind::kContinue);
  if (std::find(kRefused.begin(), kRefused.end(), name) != kRefused.end()) {
    refuse(token.place, fmt::format("the tag '{}' is not supported in a template", name));
  }
  fail_here(fmt::format("there is no tag '{}' here", name));
}

std::unique_ptr<Statement> Parser::if_statement() {
  auto made = this->made(StatementKind::kIf);
  take();
  for (;;) {
    made->expressions.push_back(tuple(false, false));
    take_operator(":");
    expect_block_end();
    made->bodies.push_back(body({"elif", "else", "endif"}));
    const std::string next = take().text;
    if (next == "elif") continue;
    if (next == "else") made->bodies.push_back(inner_body("endif"));
    return made;
  }
}

std::unique_ptr<Statement> Parser::for_statement() {
  auto made = this->made(StatementKind::kFor);
  take();
  made->target = target(false, "in");
  expect_name("in");
  made->expressions.push_back(tuple(false, false, "recursive"));
  made->expressions.push_back(take_name("if") ? expression() : nullptr);
  if (current().is_name("recursive")) {
    refuse(current().place, "a recursive loop is not supported: use a macro that calls itself");
  }
  take_operator(":");
  expect_block_end();
  const bool outer = std::exchange(in_loop_, true);
  made->bodies.push_back(body({"else", "endfor"}));
  in_loop_ = outer;
  if (take().text == "else") made->bodies.push_back(inner_body("endfor"));
  return made;
}

std::unique_ptr<Statement> Parser::set_statement() {
  auto made = this->made(StatementKind::kSet);
  take();
  made->target = target(true, {});
  if (take_operator("=")) {
    made->expressions.push_back(tuple(true, false));
    return made;
  }
  made->kind = StatementKind::kSetBlock;
  ExpressionPtr through;
  while (take_operator("|")) through = filter(std::move(through));
  made->expressions.push_back(std::move(through));
  const bool loop = std::exchange(in_loop_, false);
  const bool buffered = std::exchange(in_buffer_, true);
  const std::string_view buffer = std::exchange(buffer_, "set");
  made->bodies.push_back(inner_body("endset"));
  in_loop_ = loop, in_buffer_ = buffered, buffer_ = buffer;
  return made;
}

std::unique_ptr<Statement> Parser::with_statement() {
  auto made = this->made(StatementKind::kWith);
  take();
  while (current().kind != TokenKind::kBlockEnd) {
    if (!made->targets.empty()) expect_operator(",");
    made->targets.push_back(one_target(false));
    expect_operator("=");
    made->expressions.push_back(expression());
  }
  made->bodies.push_back(inner_body("endwith"));
  return made;
}

std::vector<Parameter> Parser::parameters() {
  std::vector<Parameter> made;
  expect_operator("(");
  while (!current().is_operator(")")) {
    if (!made.empty()) expect_operator(",");
    Parameter parameter;
    parameter.name = name_target().name;
    if (take_operator("=")) {
      parameter.otherwise = expression();
    } else if (!made.empty() && made.back().otherwise != nullptr) {
      fail_here("a parameter without a default behind a parameter with a default");
    }
    made.push_back(std::move(parameter));
  }
  expect_operator(")");
  return made;
}

// What a macro's body names, the macro around it has too.
void Parser::pass_names(const Statement& inner) {
  if (macro_ == nullptr) return;
  macro_->has_caller |= inner.has_caller;
  macro_->has_varargs |= inner.has_varargs;
  macro_->has_kwargs |= inner.has_kwargs;
}

std::unique_ptr<Statement> Parser::macro_statement() {
  auto made = this->made(StatementKind::kMacro);
  take();
  made->name = name_target().name;
  Statement* outer = std::exchange(macro_, made.get());
  made->parameters = parameters();
  const bool loop = std::exchange(in_loop_, false);
  const bool buffered = std::exchange(in_buffer_, true);
  const std::string_view buffer = std::exchange(buffer_, "macro");
  made->bodies.push_back(inner_body("endmacro"));
  in_loop_ = loop, in_buffer_ = buffered, buffer_ = buffer;
  macro_ = outer;
  pass_names(*made);
  return made;
}

std::unique_ptr<Statement> Parser::call_statement() {
  auto made = this->made(StatementKind::kCallBlock);
  take();
  Statement* outer = std::exchange(macro_, made.get());
  if (current().is_operator("(")) made->parameters = parameters();
  macro_ = outer;
  const SourcePosition place = current().place;
  made->expressions.push_back(expression());
  if (made->expressions[0]->kind != ExpressionKind::kCall) {
    fail_at(ErrorCode::kInvalid, name_, place, "expected a call behind 'call'");
  }
  macro_ = made.get();
  const bool loop = std::exchange(in_loop_, false);
  const bool buffered = std::exchange(in_buffer_, true);
  const std::string_view buffer = std::exchange(buffer_, "call");
  made->bodies.push_back(inner_body("endcall"));
  in_loop_ = loop, in_buffer_ = buffered, buffer_ = buffer;
  macro_ = outer;
  pass_names(*made);
  return made;
}

std::unique_ptr<Statement> Parser::filter_statement() {
  auto made = this->made(StatementKind::kFilterBlock);
  take();
  ExpressionPtr through = filter(nullptr);
  while (take_operator("|")) through = filter(std::move(through));
  made->expressions.push_back(std::move(through));
  const bool loop = std::exchange(in_loop_, false);
  const bool buffered = std::exchange(in_buffer_, true);
  const std::string_view buffer = std::exchange(buffer_, "filter");
  made->bodies.push_back(inner_body("endfilter"));
  in_loop_ = loop, in_buffer_ = buffered, buffer_ = buffer;
  return made;
}

std::unique_ptr<Statement> Parser::generation_statement() {
  auto made = this->made(StatementKind::kGeneration);
  if (in_buffer_) {
    refuse(made->place,
           fmt::format("generation inside '{}' is not supported: its place in the output "
                       "is not known there",
                       buffer_));
  }
  has_generation_ = true;
  take();
  const bool loop = std::exchange(in_loop_, false);
  const bool buffered = std::exchange(in_buffer_, true);
  const std::string_view buffer = std::exchange(buffer_, "generation");
  made->bodies.push_back(inner_body("endgeneration"));
  in_loop_ = loop, in_buffer_ = buffered, buffer_ = buffer;
  return made;
}

std::unique_ptr<Statement> Parser::print_statement() {
  auto made = this->made(StatementKind::kPrint);
  take();
  while (current().kind != TokenKind::kBlockEnd) {
    if (!made->expressions.empty()) expect_operator(",");
    made->expressions.push_back(expression());
  }
  return made;
}

std::unique_ptr<Statement> Parser::loop_control(StatementKind kind) {
  auto made = this->made(kind);
  if (!in_loop_) fail_here(fmt::format("'{}' has no loop around it here", current().text));
  take();
  return made;
}

Target Parser::name_target() {
  const Token token = current();
  static constexpr std::array<std::string_view, 6> kConstants = {"true", "false", "none",
                                                                 "True", "False", "None"};
  Target made;
  made.place = token.place;
  made.name = expect_any_name("a name");
  if (std::find(kConstants.begin(), kConstants.end(), made.name) != kConstants.end()) {
    fail_at(ErrorCode::kInvalid, name_, token.place, fmt::format("'{}' is a constant", made.name));
  }
  return made;
}

Target Parser::one_target(bool namespaces) {
  const Depth depth(*this);
  if (!take_operator("(")) {
    Target made = name_target();
    if (namespaces && take_operator(".")) made.attribute = expect_any_name("a name behind the dot");
    return made;
  }
  Target made = target(namespaces, {});
  expect_operator(")");
  return made;
}

// One target, or several with commas between them. `end`: the name behind them.
Target Parser::target(bool namespaces, std::string_view end) {
  Target made;
  made.place = current().place;
  made.parts.push_back(one_target(namespaces));
  while (take_operator(",")) {
    made.is_tuple = true;
    if (current().is_operator(")") || current().is_operator("=") ||
        current().kind == TokenKind::kBlockEnd || (!end.empty() && current().is_name(end))) {
      break;
    }
    made.parts.push_back(one_target(namespaces));
  }
  if (made.is_tuple) return made;
  Target only = std::move(made.parts[0]);
  return only;
}

}  // namespace skein::jinja
