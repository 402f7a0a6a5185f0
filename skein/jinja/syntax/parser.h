// Tokens become a tree, by the grammar of jinja2; what is not supported is refused here, by name.
//
//   template   = { text | "{{" tuple "}}" | "{%" statement "%}" }
//   statement  = if | for | set | with | macro | call | filter | generation | print | break |
//   continue
//   tuple      = expression { "," expression } [","]
//   expression = or [ "if" or [ "else" expression ] ]
//   or = and { "or" and };  and = not { "and" not };  not = "not" not | compare
//   compare    = sum { ("==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in") sum }
//   sum        = concat { ("+" | "-") concat };  concat = product { "~" product }
//   product    = power { ("*" | "/" | "//" | "%") power };  power = unary { "**" unary }
//   unary      = ["+" | "-"] primary { "." name | "[" … "]" | "(" … ")" } { "|" filter | "is" test
//              | "(" … ")" }
//   primary    = name | string… | number | "(" … ")" | "[" … "]" | "{" … "}"
//
// ** binds to the left, and a filter tighter than any operator but a sign's: jinja2 has it so.
//
// Errors   Error{kInvalid | kUnsupported, "NAME:LINE:COLUMN: …"}
// Source   jinja2 3.1.6, parser.py
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skein/jinja/syntax/syntax.h"

namespace skein::jinja {

class Parser {
 public:
  // `filters`: null, or filters beside jinja2's own; the tree refers to them.
  Parser(std::vector<Token> tokens, const std::string& name, const FilterMap* filters)
      : tokens_(std::move(tokens)), name_(name), filters_(filters) {}

  Body parse();
  bool has_generation() const { return has_generation_; }

 private:
  // parse_statement.cc
  Body body(const std::vector<std::string_view>& ends);
  Body inner_body(std::string_view end);  // behind a tag, to {% end %}, which is read
  std::unique_ptr<Statement> statement();
  std::unique_ptr<Statement> if_statement();
  std::unique_ptr<Statement> for_statement();
  std::unique_ptr<Statement> set_statement();
  std::unique_ptr<Statement> with_statement();
  std::unique_ptr<Statement> macro_statement();
  std::unique_ptr<Statement> call_statement();
  std::unique_ptr<Statement> filter_statement();
  std::unique_ptr<Statement> generation_statement();
  std::unique_ptr<Statement> print_statement();
  std::unique_ptr<Statement> loop_control(StatementKind kind);
  std::unique_ptr<Statement> made(StatementKind kind);
  std::vector<Parameter> parameters();
  void pass_names(const Statement& inner);
  Target target(bool namespaces, std::string_view end);
  Target one_target(bool namespaces);
  Target name_target();

  // parse_expression.cc
  ExpressionPtr tuple(bool conditional, bool empty_is_tuple, std::string_view end = {});
  ExpressionPtr expression();
  ExpressionPtr any_or();
  ExpressionPtr all_and();
  ExpressionPtr any_not();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filter);
  ExpressionPtr primary();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr of);
  ExpressionPtr filters_and_tests(ExpressionPtr of);
  ExpressionPtr subscript(ExpressionPtr of);
  ExpressionPtr slice(ExpressionPtr of, ExpressionPtr start);

  // parse_call.cc
  ExpressionPtr call(ExpressionPtr of);
  ExpressionPtr filter(ExpressionPtr of);
  ExpressionPtr test(ExpressionPtr of);
  CallArguments arguments(int& depth);
  void argument(CallArguments& arguments, int& depth);

  ExpressionPtr node(ExpressionKind kind, SourcePosition place, std::vector<ExpressionPtr> parts);
  template <typename... Parts>
  ExpressionPtr node_of(ExpressionKind kind, SourcePosition place, Parts... parts) {
    std::vector<ExpressionPtr> list;
    (list.push_back(std::move(parts)), ...);
    return node(kind, place, std::move(list));
  }
  int deeper(int depth, SourcePosition place) const;

  // Tokens.
  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  bool take_name(std::string_view name);
  bool take_operator(std::string_view symbol);
  void expect_operator(std::string_view symbol);
  void expect_name(std::string_view name);
  std::string expect_any_name(const char* what);
  void expect_block_end();
  [[noreturn]] void fail_here(const std::string& why) const;
  [[noreturn]] void refuse(SourcePosition place, const std::string& why) const;
  static std::string described(const Token& token);

  struct Depth {  // of the parser's own calls
    explicit Depth(Parser& parser);
    ~Depth() { --parser_.depth_; }
    Parser& parser_;
  };

  const std::vector<Token> tokens_;
  const std::string& name_;
  const FilterMap* filters_;
  size_t at_ = 0;
  int depth_ = 0;
  bool in_loop_ = false;     // break and continue have a loop here
  bool in_buffer_ = false;   // what is written here is not the output yet
  std::string_view buffer_;  // the block that holds it back
  bool has_generation_ = false;
  Statement* macro_ = nullptr;  // the innermost one
};

}  // namespace skein::jinja
