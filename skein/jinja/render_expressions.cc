#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "skein/jinja/library/filters.h"
#include "skein/jinja/library/functions.h"
#include "skein/jinja/library/methods.h"
#include "skein/jinja/renderer.h"
#include "skein/jinja/values/operators.h"
#include "skein/jinja/values/printed.h"

namespace skein::jinja {

Value Renderer::evaluate(const Expression& expression) {
  try {
    const Depth depth(*this);
    budget_.step();
    return evaluate_kind(expression);
  } catch (const Refusal& refusal) {
    fail_at(ErrorCode::kInvalid, name_, expression.place, refusal.what());
  }
}

Value Renderer::evaluate_kind(const Expression& expression) {
  const auto part = [&](size_t i) { return evaluate(*expression.parts[i]); };
  switch (expression.kind) {
    case ExpressionKind::kConstant:
      return expression.constant;
    case ExpressionKind::kName:
      return name_value(expression.name);
    case ExpressionKind::kList:
    case ExpressionKind::kTuple:
    case ExpressionKind::kDict:
    case ExpressionKind::kConcat:
      return constant_parts(expression);
    case ExpressionKind::kAttribute:
      return attribute(part(0), expression.name);
    case ExpressionKind::kItem: {
      const Value of = part(0);
      return item(of, part(1));
    }
    case ExpressionKind::kSlice:
      return slice_parts(expression);
    case ExpressionKind::kCall:
      return call(expression);
    case ExpressionKind::kFilter: {
      const Value of = part(0);
      return filter(expression, &of);
    }
    case ExpressionKind::kTest: {
      const Value of = part(0);
      return Value::boolean(
          passes_test(expression.name, of, arguments_of(expression.arguments), budget_));
    }
    case ExpressionKind::kNot:
      return Value::boolean(!is_true(part(0)));
    case ExpressionKind::kNegative:
      return negative(part(0));
    case ExpressionKind::kPositive:
      return positive(part(0));
    case ExpressionKind::kAnd: {
      Value left = part(0);
      return is_true(left) ? part(1) : left;
    }
    case ExpressionKind::kOr: {
      Value left = part(0);
      return is_true(left) ? left : part(1);
    }
    case ExpressionKind::kBinary: {
      const Value left = part(0);
      return binary(expression.operators[0], left, part(1), budget_);
    }
    case ExpressionKind::kCompare:
      return compare_parts(expression);
    case ExpressionKind::kConditional:
      if (is_true(part(0))) return part(1);
      if (expression.parts[2] != nullptr) return part(2);
      // Not strict in any environment: jinja2 prints nothing for it.
      return Value::undefined("the inline if is false and has no else");
  }
  return {};
}

Value Renderer::constant_parts(const Expression& expression) {
  if (expression.kind == ExpressionKind::kDict) {
    auto made = std::make_shared<Dict>();
    for (size_t i = 0; i < expression.parts.size(); i += 2) {
      Value key = evaluate(*expression.parts[i]);
      made->set(std::move(key), evaluate(*expression.parts[i + 1]));
    }
    return Value::of(Kind::kDict, std::move(made));
  }
  if (expression.kind == ExpressionKind::kConcat) {
    std::string text;
    for (const auto& part : expression.parts) {
      const std::string more = printed(evaluate(*part), budget_);
      budget_.make(static_cast<int64_t>(more.size()));
      text += more;
    }
    return Value::string(std::move(text));
  }
  std::vector<Value> items;
  budget_.make(static_cast<int64_t>(expression.parts.size() * sizeof(Value)));
  for (const auto& part : expression.parts) items.push_back(evaluate(*part));
  return Value::list(std::move(items),
                     expression.kind == ExpressionKind::kTuple ? Flavor::kTuple : Flavor::kList);
}

Value Renderer::compare_parts(const Expression& expression) {
  Value left = evaluate(*expression.parts[0]);
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    Value right = evaluate(*expression.parts[i + 1]);
    if (!compare(expression.operators[i], left, right, budget_)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Renderer::slice_parts(const Expression& expression) {
  const Value of = evaluate(*expression.parts[0]);
  std::array<Value, 3> bounds;
  for (size_t i = 0; i < 3; ++i) {
    const Expression* bound = expression.parts[i + 1].get();
    bounds[i] = bound == nullptr ? Value::none() : evaluate(*bound);
  }
  return slice_of(of, bounds[0], bounds[1], bounds[2], budget_);
}

Arguments Renderer::arguments_of(const CallArguments& arguments) {
  Arguments made;
  for (const auto& argument : arguments.positional) made.positional.push_back(evaluate(*argument));
  for (const auto& [name, argument] : arguments.named) {
    made.named.emplace_back(name, evaluate(*argument));
  }
  if (arguments.star != nullptr) {
    const std::vector<Value> more = items_of(evaluate(*arguments.star), budget_);
    made.positional.insert(made.positional.end(), more.begin(), more.end());
  }
  if (arguments.double_star != nullptr) {
    const Value more = evaluate(*arguments.double_star);
    if (!more.is(Kind::kDict)) throw Refusal("argument after ** must be a mapping");
    for (const auto& [key, value] : more.as_dict().entries) {
      if (!key.is_string()) throw Refusal("keywords must be strings");
      made.named.emplace_back(key.text(), value);
    }
  }
  return made;
}

Value Renderer::call(const Expression& expression) {
  const Expression& callee = *expression.parts[0];
  if (callee.kind == ExpressionKind::kAttribute) {  // a method: called without being made a value
    const Value of = evaluate(*callee.parts[0]);
    if (has_method(of, callee.name)) {
      return call_method(of, callee.name, arguments_of(expression.arguments), budget_);
    }
    const Value function = attribute(of, callee.name);
    need_defined(function);
    if (function.is(Kind::kCallable)) {
      return function.as_callable().call(arguments_of(expression.arguments));
    }
    throw Refusal(fmt::format("'{}' object is not callable", type_name(function)));
  }
  const Value function = evaluate(callee);
  need_defined(function);
  if (!function.is(Kind::kCallable)) {
    throw Refusal(fmt::format("'{}' object is not callable", type_name(function)));
  }
  return function.as_callable().call(arguments_of(expression.arguments));
}

Value Renderer::filter(const Expression& expression, const Value* of) {
  if (expression.filter != nullptr) {
    budget_.step();
    need_defined(*of);
    Value made = (*expression.filter)(*of, arguments_of(expression.arguments));
    if (made.is_string()) budget_.make(static_cast<int64_t>(made.text().size()));
    return made;
  }
  return apply_filter(expression.name, *of, arguments_of(expression.arguments), budget_);
}

// `value` through filters that stand without one: {% filter a | b %}.
Value Renderer::through(const Expression* filters, Value value) {
  if (filters == nullptr) return value;
  if (!filters->parts.empty() && filters->parts[0] != nullptr) {
    value = through(filters->parts[0].get(), std::move(value));
  }
  return filter(*filters, &value);
}

Value Renderer::name_value(const std::string& name) {
  for (Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    if (const Value* value = scope->find(name)) return *value;
  }
  if (variables_.is(Kind::kDict)) {
    if (const Value* value = variables_.as_dict().find(name)) return *value;
  }
  return global(name);
}

Value Renderer::global(const std::string& name) {
  const auto function = [&](auto call) {
    auto made = std::make_shared<Callable>();
    made->name = name;
    made->call = call;
    return Value::of(Kind::kCallable, std::move(made));
  };
  if (name == "range") {
    return function([this](const Arguments& given) { return range_of(given, budget_); });
  }
  if (name == "dict") return function([](const Arguments& given) { return dict_of(given); });
  if (name == "namespace") {
    return function([this](const Arguments& given) { return namespace_of(given); });
  }
  if (name == "raise_exception") {
    return function([this](const Arguments& given) -> Value {
      const std::string why = given.positional.empty() ? "" : printed(given.positional[0], budget_);
      throw Refusal(fmt::format("the template refuses this: {}", why));
    });
  }
  if (name == "strftime_now") {
    return function([this](const Arguments& given) { return time_text(given, options_.now); });
  }
  if (name == "cycler" || name == "joiner" || name == "lipsum") {
    throw Refusal(fmt::format("the function '{}' is not supported", name));
  }
  return Value::undefined(fmt::format("'{}' is undefined", name), options_.strict_undefined);
}

Value Renderer::namespace_of(const Arguments& arguments) {
  const Value values = dict_of(arguments);
  auto made = std::make_shared<Namespace>();
  for (const auto& [key, value] : values.as_dict().entries) {
    if (key.is_string() && !key.text().empty() && key.text()[0] == '_') {
      throw Refusal("a namespace stores no names that begin with an underscore");
    }
    if (key.is_string()) made->values.emplace_back(key.text(), value);
  }
  budget_.make(sizeof(Namespace));
  namespaces_.push_back(made);
  return Value::of(Kind::kNamespace, std::move(made));
}

Value Renderer::attribute(const Value& of, const std::string& name) {
  need_defined(of);
  if (of.is(Kind::kNamespace)) {
    if (const Value* value = of.as_namespace().find(name)) return *value;
  } else if (of.is(Kind::kLoop)) {
    if (std::optional<Value> value = of.as_loop().attribute(name)) {
      if (!value->is_undefined() || !options_.strict_undefined) return *value;
      return Value::undefined(value->text(), true);
    }
  }
  if (has_method(of, name)) return method_of(of, name, budget_);
  return of.is(Kind::kDict) ? item_of(of, Value::string(name), budget_)
                            : Value::undefined(fmt::format("'{} object' has no attribute '{}'",
                                                           type_name(of), name),
                                               options_.strict_undefined);
}

Value Renderer::item(const Value& of, const Value& key) {
  need_defined(of);
  if (key.is_string()) {
    if (of.is(Kind::kDict)) {
      if (const Value* value = of.as_dict().find(key)) return *value;
    }
    return attribute(of, key.text());
  }
  return item_of(of, key, budget_);
}

}  // namespace skein::jinja
