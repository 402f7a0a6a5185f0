#include <fmt/format.h>

#include <algorithm>

#include "skein/jinja/renderer.h"
#include "skein/jinja/values/printed.h"

namespace skein::jinja {

Value* Scope::find(std::string_view name) {
  for (auto& [key, value] : values) {
    if (key == name) return &value;
  }
  return nullptr;
}

Renderer::Renderer(const std::string& name, const Value& variables, const RenderOptions& options)
    : name_(name),
      variables_(variables),
      options_(options),
      budget_(options.limits, options.strict_undefined) {}

// Macros hold the scope that holds them, and namespaces may hold themselves.
Renderer::~Renderer() {
  for (const auto& scope : held_) scope->values.clear();
  for (const auto& space : namespaces_) space->values.clear();
}

Renderer::Depth::Depth(Renderer& renderer) : renderer_(renderer) {
  if (++renderer.depth_ > renderer.options_.limits.max_depth) {
    --renderer.depth_;
    throw Refusal(
        fmt::format("the template goes deeper than {} levels: a macro calls itself without end?",
                    renderer.options_.limits.max_depth));
  }
}

Rendered Renderer::render(const Body& body) {
  execute(body);
  return std::move(made_);
}

void Renderer::write(std::string_view text) {
  budget_.pass_over(static_cast<int64_t>(text.size()));
  const int64_t most = options_.limits.max_output_bytes;
  if (static_cast<int64_t>(text.size()) > most - static_cast<int64_t>(out_->size())) {
    throw Refusal(fmt::format("the template writes more than {} bytes", most));
  }
  *out_ += text;
}

Renderer::Flow Renderer::execute(const Body& body) {
  for (const auto& statement : body) {
    if (const Flow flow = execute(*statement); flow != Flow::kOn) return flow;
  }
  return Flow::kOn;
}

Renderer::Flow Renderer::execute(const Statement& statement) {
  try {
    const Depth depth(*this);
    budget_.step();
    switch (statement.kind) {
      case StatementKind::kText:
        write(statement.text);
        break;
      case StatementKind::kPrint:
        for (const auto& expression : statement.expressions) {
          write(printed(evaluate(*expression), budget_));
        }
        break;
      case StatementKind::kIf:
        return execute_if(statement);
      case StatementKind::kFor:
        return execute_for(statement);
      case StatementKind::kSet:
      case StatementKind::kSetBlock:
        execute_set(statement);
        break;
      case StatementKind::kWith:
        return execute_with(statement);
      case StatementKind::kMacro:
        assign_name(statement.name, macro_of(statement, statement.name));
        break;
      case StatementKind::kCallBlock:
        execute_call(statement);
        break;
      case StatementKind::kFilterBlock: {
        Value text = Value::string(captured(statement.bodies[0]));
        write(printed(through(statement.expressions[0].get(), std::move(text)), budget_));
        break;
      }
      case StatementKind::kGeneration:
        execute_generation(statement);
        break;
      case StatementKind::kBreak:
        return Flow::kBreak;
      case StatementKind::kContinue:
        return Flow::kContinue;
    }
    return Flow::kOn;
  } catch (const Refusal& refusal) {
    fail_at(ErrorCode::kInvalid, name_, statement.place, refusal.what());
  }
}

Renderer::Flow Renderer::execute_if(const Statement& statement) {
  const auto& conditions = statement.expressions;
  for (size_t i = 0; i < conditions.size(); ++i) {
    if (is_true(evaluate(*conditions[i]))) return execute(statement.bodies[i]);
  }
  if (statement.bodies.size() > conditions.size()) return execute(statement.bodies.back());
  return Flow::kOn;
}

Renderer::Flow Renderer::execute_for(const Statement& statement) {
  const std::shared_ptr<Scope> outer = scope_;
  const auto inner = [&] {
    scope_ = std::make_shared<Scope>();
    scope_->parent = outer;
  };
  auto loop = std::make_shared<Loop>();
  loop->items = items_of(evaluate(*statement.expressions[0]), budget_);
  if (const Expression* condition = statement.expressions[1].get()) {
    loop->test = [this, condition, outer, &statement](const Value& item) {
      const std::shared_ptr<Scope> before = scope_;
      scope_ = std::make_shared<Scope>();
      scope_->parent = outer;
      assign(statement.target, item);
      const bool passes = is_true(evaluate(*condition));
      scope_ = before;
      return passes;
    };
  }
  bool ran = false;
  while (loop->advance()) {
    ran = true;
    budget_.step();
    inner();
    assign_name("loop", Value::of(Kind::kLoop, loop));
    assign(statement.target, loop->current);
    const Flow flow = execute(statement.bodies[0]);
    scope_ = outer;
    if (flow == Flow::kBreak) break;
  }
  Flow flow = Flow::kOn;
  if (!ran && statement.bodies.size() > 1) {
    inner();
    flow = execute(statement.bodies[1]);
    scope_ = outer;
  }
  return flow;
}

std::string Renderer::captured(const Body& body) {
  std::string text;
  std::string* const out = std::exchange(out_, &text);
  const std::shared_ptr<Scope> outer = scope_;
  scope_ = std::make_shared<Scope>();
  scope_->parent = outer;
  execute(body);
  scope_ = outer;
  out_ = out;
  budget_.make(static_cast<int64_t>(text.size()));
  return text;
}

void Renderer::execute_set(const Statement& statement) {
  if (statement.kind == StatementKind::kSet) {
    return assign(statement.target, evaluate(*statement.expressions[0]));
  }
  Value text = Value::string(captured(statement.bodies[0]));
  assign(statement.target, through(statement.expressions[0].get(), std::move(text)));
}

Renderer::Flow Renderer::execute_with(const Statement& statement) {
  std::vector<Value> values;
  for (const auto& expression : statement.expressions) values.push_back(evaluate(*expression));
  const std::shared_ptr<Scope> outer = scope_;
  scope_ = std::make_shared<Scope>();
  scope_->parent = outer;
  for (size_t i = 0; i < values.size(); ++i) assign(statement.targets[i], std::move(values[i]));
  const Flow flow = execute(statement.bodies[0]);
  scope_ = outer;
  return flow;
}

void Renderer::execute_generation(const Statement& statement) {
  const std::string text = captured(statement.bodies[0]);
  const auto begin = static_cast<int64_t>(made_.text.size());
  write(text);
  made_.generations.push_back({begin, static_cast<int64_t>(made_.text.size())});
}

void Renderer::execute_call(const Statement& statement) {
  const Expression& expression = *statement.expressions[0];
  const Value callee = evaluate(*expression.parts[0]);
  need_defined(callee);
  if (!callee.is(Kind::kCallable)) {
    throw Refusal(fmt::format("'{}' object is not callable", type_name(callee)));
  }
  Arguments arguments = arguments_of(expression.arguments);
  arguments.named.emplace_back("caller", macro_of(statement, "caller"));
  write(printed(callee.as_callable().call(arguments), budget_));
}

Value Renderer::macro_of(const Statement& statement, std::string name) {
  held_.push_back(scope_);
  budget_.make(sizeof(Callable));
  auto made = std::make_shared<Callable>();
  made->name = std::move(name);
  made->call = [this, &statement, scope = scope_, title = made->name](const Arguments& arguments) {
    return call_macro(statement, title, scope, arguments);
  };
  return Value::of(Kind::kCallable, std::move(made));
}

Value Renderer::call_macro(const Statement& macro, const std::string& name,
                           const std::shared_ptr<Scope>& scope, const Arguments& arguments) {
  const Depth depth(*this);
  const std::shared_ptr<Scope> outer = scope_;
  scope_ = std::make_shared<Scope>();
  scope_->parent = scope;
  std::string text;
  std::string* const out = std::exchange(out_, &text);
  bind_parameters(macro, name, arguments);
  execute(macro.bodies[0]);
  out_ = out;
  scope_ = outer;
  budget_.make(static_cast<int64_t>(text.size()));
  return Value::string(std::move(text));
}

void Renderer::bind_parameters(const Statement& macro, const std::string& name,
                               Arguments arguments) {
  const auto take = [&](const std::string& wanted) -> std::optional<Value> {
    for (auto at = arguments.named.begin(); at != arguments.named.end(); ++at) {
      if (at->first != wanted) continue;
      Value value = std::move(at->second);
      arguments.named.erase(at);
      return value;
    }
    return std::nullopt;
  };
  bool has_caller = false;
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const Parameter& parameter = macro.parameters[i];
    has_caller |= parameter.name == "caller";
    std::optional<Value> value;
    if (i < arguments.positional.size()) {
      value = arguments.positional[i];
    } else {
      value = take(parameter.name);
    }
    if (!value && parameter.otherwise != nullptr) value = evaluate(*parameter.otherwise);
    if (!value) {
      value = Value::undefined(fmt::format("parameter '{}' was not provided", parameter.name),
                               options_.strict_undefined);
    }
    assign_name(parameter.name, std::move(*value));
  }
  if (macro.has_caller && !has_caller) {
    const std::optional<Value> caller = take("caller");
    assign_name("caller", caller
                              ? *caller
                              : Value::undefined("No caller defined", options_.strict_undefined));
  }
  if (macro.has_kwargs) {
    auto rest = std::make_shared<Dict>();
    for (auto& [key, value] : arguments.named) rest->set(Value::string(key), std::move(value));
    assign_name("kwargs", Value::of(Kind::kDict, std::move(rest)));
  } else if (!arguments.named.empty()) {
    throw Refusal(
        fmt::format("macro '{}' takes no keyword argument '{}'", name, arguments.named[0].first));
  }
  const size_t taken = std::min(macro.parameters.size(), arguments.positional.size());
  if (macro.has_varargs) {
    assign_name("varargs", Value::tuple({arguments.positional.begin() + static_cast<int64_t>(taken),
                                         arguments.positional.end()}));
  } else if (taken < arguments.positional.size()) {
    throw Refusal(fmt::format("macro '{}' takes not more than {} argument(s)", name,
                              macro.parameters.size()));
  }
}

void Renderer::assign_name(const std::string& name, Value value) {
  if (Value* there = scope_->find(name)) {
    *there = std::move(value);
  } else {
    scope_->values.emplace_back(name, std::move(value));
  }
}

void Renderer::assign(const Target& target, Value value) {
  if (target.is_tuple) {
    const std::vector<Value> values = items_of(value, budget_);
    if (values.size() != target.parts.size()) {
      throw Refusal(fmt::format("{} names for {} values", target.parts.size(), values.size()));
    }
    for (size_t i = 0; i < values.size(); ++i) assign(target.parts[i], values[i]);
    return;
  }
  if (target.attribute.empty()) return assign_name(target.name, std::move(value));
  const Value space = name_value(target.name);
  if (!space.is(Kind::kNamespace)) {
    throw Refusal(fmt::format("cannot assign '{}.{}': '{}' is not a namespace", target.name,
                              target.attribute, target.name));
  }
  if (target.attribute[0] == '_') {
    throw Refusal("a namespace stores no names that begin with an underscore");
  }
  if (Value* there = space.as_namespace().find(target.attribute)) {
    *there = std::move(value);
  } else {
    space.as_namespace().values.emplace_back(target.attribute, std::move(value));
  }
}

}  // namespace skein::jinja
