// Walks a template's tree and writes its text.
//
// A for loop's body, a macro, with, and the blocks that hold their text back (set, filter, call,
// generation) have names of their own, which are gone behind them; an if has not. A name is looked
// up from the innermost of these outwards, then among the variables that were given, then among
// jinja2's functions.
//
// Errors   Error{kInvalid, "NAME:LINE:COLUMN: …"}, of the innermost expression
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "skein/jinja/syntax/syntax.h"
#include "skein/jinja/template.h"
#include "skein/jinja/values/budget.h"
#include "skein/jinja/values/loop.h"

namespace skein::jinja {

struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string, Value>> values;
  Value* find(std::string_view name);
};

class Renderer {
 public:
  Renderer(const std::string& name, const Value& variables, const RenderOptions& options);
  ~Renderer();
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  Rendered render(const Body& body);

 private:
  enum class Flow : uint8_t { kOn, kBreak, kContinue };
  struct Depth {
    explicit Depth(Renderer& renderer);
    ~Depth() { --renderer_.depth_; }
    Renderer& renderer_;
  };

  // render_statements.cc
  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  Flow execute_if(const Statement& statement);
  Flow execute_for(const Statement& statement);
  void execute_set(const Statement& statement);
  Flow execute_with(const Statement& statement);
  void execute_call(const Statement& statement);
  void execute_generation(const Statement& statement);
  Value macro_of(const Statement& statement, std::string name);
  Value call_macro(const Statement& macro, const std::string& name,
                   const std::shared_ptr<Scope>& scope, const Arguments& arguments);
  void bind_parameters(const Statement& macro, const std::string& name, Arguments arguments);
  std::string captured(const Body& body);  // the text of a body, in a scope of its own
  void assign(const Target& target, Value value);
  void assign_name(const std::string& name, Value value);
  void write(std::string_view text);

  // render_expressions.cc
  Value evaluate(const Expression& expression);
  Value evaluate_kind(const Expression& expression);
  Value constant_parts(const Expression& expression);
  Value compare_parts(const Expression& expression);
  Value slice_parts(const Expression& expression);
  Value call(const Expression& expression);
  Value filter(const Expression& expression, const Value* of);
  Value through(const Expression* filters, Value value);
  Arguments arguments_of(const CallArguments& arguments);
  Value name_value(const std::string& name);
  Value global(const std::string& name);
  Value attribute(const Value& of, const std::string& name);
  Value item(const Value& of, const Value& key);
  Value namespace_of(const Arguments& arguments);

  const std::string& name_;
  const Value& variables_;
  const RenderOptions& options_;
  Budget budget_;
  Rendered made_;
  std::string* out_ = &made_.text;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  std::vector<std::shared_ptr<Scope>> held_;  // by macros of their own
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  int depth_ = 0;
};

}  // namespace skein::jinja
