#include "skein/evaluate/yaml/yaml_value.h"

#include <yaml.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/evaluate/yaml/yaml_builder.h"

namespace skein {
namespace {

// libyaml's parser of a text that outlives it.
class Parser {
 public:
  Parser(std::string_view text, const std::string& what) : text_(text), what_(what) {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  ~Parser() { yaml_parser_delete(&parser_); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  // The next event goes to `builder`; false at the end.
  bool next(YamlBuilder& builder) {
    Event event;
    if (yaml_parser_parse(&parser_, &event.event) == 0) refuse();
    if (event.event.type == YAML_STREAM_END_EVENT) return false;
    builder.add(event.event);
    return true;
  }

 private:
  struct Event {
    yaml_event_t event{};
    ~Event() { yaml_event_delete(&event); }
  };

  [[noreturn]] void refuse() const {
    if (parser_.error == YAML_MEMORY_ERROR) throw std::bad_alloc();
    const char* const problem = parser_.problem == nullptr ? "unknown" : parser_.problem;
    if (parser_.error == YAML_READER_ERROR) {
      const std::string_view before = text_.substr(0, parser_.problem_offset);
      fail(ErrorCode::kInvalid, "{}: line {}: {} (byte {}); expected UTF-8 text", what_,
           std::count(before.begin(), before.end(), '\n') + 1, problem, parser_.problem_offset + 1);
    }
    const std::string context =
        parser_.context == nullptr ? "" : std::string(parser_.context) + ", ";
    fail(ErrorCode::kInvalid, "{}: line {}, column {}: not YAML: {}{}", what_,
         parser_.problem_mark.line + 1, parser_.problem_mark.column + 1, context, problem);
  }

  std::string_view text_;
  const std::string& what_;
  yaml_parser_t parser_{};
};

}  // namespace

jinja::Value yaml_value(std::string_view text, const std::string& what, const YamlLimits& limits) {
  if (std::ssize(text) > limits.max_bytes)
    fail(ErrorCode::kInvalid, "{}: {} bytes of YAML; at most {} are read", what, text.size(),
         limits.max_bytes);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  Parser parser(text, what);
  YamlBuilder builder(what, limits);
  try {
    while (parser.next(builder)) {
    }
  } catch (const jinja::Refusal& refusal) {
    fail(ErrorCode::kInvalid, "{}: {}", what, refusal.what());
  }
  return builder.value().is_undefined() ? jinja::Value::none() : builder.value();
}

}  // namespace skein
