// Jinja templates, in the part of the language that chat templates and lm-evaluation-harness's
// tasks use: rendered as jinja2 renders them in the environment that transformers makes (its
// sandbox, with trim_blocks, lstrip_blocks, break and continue, and {% generation %}).
//
//   jinja::Template chat("{% for m in messages %}{{ m.content }}\n{% endfor %}",
//   "chat_template.jinja"); chat.render(json_value(R"({"messages": [{"content": "hi"}]})", "a
//   line"), {}).text   // "hi\n"
//
// Grammar   parser.h; statements if, for, set, macro, call, with, filter, print, generation, raw
// Filters   those of filters.h; tests: is_tests.cc; methods of strings, dicts and lists: methods.h
// Undefined is jinja2's: it prints as nothing, and any other use of it is an error.
// What jinja2 has and this has not is refused by name, mostly by the constructor: include, import,
// extends, block, autoescape, recursive loops, cycler, joiner, lipsum; integers beyond 64 bits; the
// text of what Python prints by its address.
// Limits    budget.h: steps, bytes, depth; a template is at most 4 MiB
// Errors    Error{kInvalid | kUnsupported, "NAME:LINE:COLUMN: …"}
// Threads   render is const and may run on several threads, each with variables of its own
// Source    jinja2 3.1.6; transformers 5.24, utils/chat_template_utils.py
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/jinja/syntax/lexer.h"
#include "skein/jinja/values/budget.h"
#include "skein/jinja/values/value.h"

namespace skein::jinja {

// Bytes [begin, end) of the text.
struct Span {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const Span& other) const { return begin == other.begin && end == other.end; }
};

struct Rendered {
  std::string text;
  std::vector<Span> generations;  // what {% generation %} blocks wrote, in order
};

struct RenderOptions {
  Limits limits;
  // What strftime_now goes by; without it, the time that it is, here.
  std::optional<std::tm> now;
  // jinja2's StrictUndefined, for tasks of evaluation: an undefined value is an error also where it
  // is printed, tested, compared, measured or looped over. An inline if without else still gives
  // nothing.
  bool strict_undefined = false;
};

class Template {
 public:
  Template(std::string_view source, std::string name, const Syntax& syntax = {});
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  // `variables`: a dict.
  Rendered render(const Value& variables, const RenderOptions& options) const;

  const std::string& name() const { return name_; }
  // Whether it says itself what the assistant wrote.
  bool has_generation() const { return has_generation_; }
  // Whether the source spells `word`: strftime_now, say.
  bool spells(std::string_view word) const;

 private:
  struct Tree;
  std::string name_;
  std::string source_;
  std::unique_ptr<Tree> tree_;
  bool has_generation_ = false;
};

}  // namespace skein::jinja
