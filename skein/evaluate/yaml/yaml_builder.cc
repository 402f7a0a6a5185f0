#include "skein/evaluate/yaml/yaml_builder.h"

#include <memory>

#include "skein/evaluate/yaml/plain_scalar.h"

namespace skein {

using jinja::Kind;
using jinja::Value;

namespace {

const std::string kStandard = "tag:yaml.org,2002:";
const std::string kFunction = "!function";

std::string text_of(const yaml_char_t* text) {
  return text == nullptr ? "" : reinterpret_cast<const char*>(text);
}

std::string shown(const std::string& tag) {
  return tag.starts_with(kStandard) ? "!!" + tag.substr(kStandard.size()) : tag;
}

bool can_be_key(const Value& value) {
  return value.is(Kind::kNone) || value.is_number() || value.is(Kind::kBigInteger) ||
         value.is_string();
}

Value function_value(const std::string& name, const std::string& file) {
  auto function = std::make_shared<YamlFunction>();
  function->name = name;
  function->file = file;
  function->call = [name](const jinja::Arguments&) -> Value {
    throw jinja::Refusal("!function " + name + " is a function of Python, which is not called");
  };
  return Value::of(Kind::kCallable, std::move(function));
}

}  // namespace

void YamlBuilder::refuse(const yaml_mark_t& mark, const std::string& why, ErrorCode code) const {
  fail(code, "{}: line {}, column {}: {}", what_, mark.line + 1, mark.column + 1, why);
}

void YamlBuilder::add(const yaml_event_t& event) {
  const yaml_mark_t& mark = event.start_mark;
  switch (event.type) {
    case YAML_DOCUMENT_START_EVENT:
      if (++num_documents_ > 1) refuse(mark, "a second document; a file has one");
      break;
    case YAML_ALIAS_EVENT:
      add_alias(mark, text_of(event.data.alias.anchor));
      break;
    case YAML_SCALAR_EVENT:
      add_scalar(event);
      break;
    case YAML_SEQUENCE_START_EVENT:
      open(mark, text_of(event.data.sequence_start.anchor), text_of(event.data.sequence_start.tag),
           false);
      break;
    case YAML_MAPPING_START_EVENT:
      open(mark, text_of(event.data.mapping_start.anchor), text_of(event.data.mapping_start.tag),
           true);
      break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
      close();
      break;
    default:
      break;
  }
}

void YamlBuilder::add_anchor(const yaml_mark_t& mark, const std::string& name) {
  if (!name.empty() && !anchored_.try_emplace(name).second)
    refuse(mark, "the anchor &" + name + " is there twice; give each its own name");
}

void YamlBuilder::add_alias(const yaml_mark_t& mark, const std::string& name) {
  const auto found = anchored_.find(name);
  if (found == anchored_.end()) refuse(mark, "the alias *" + name + " without an anchor &" + name);
  const Anchored anchored = found->second;
  if (anchored.num_nodes == 0) refuse(mark, "the alias *" + name + " inside what it names");
  put(mark, "", anchored.value, anchored.num_nodes);
}

Value YamlBuilder::plain(const yaml_mark_t& mark, const std::string& text) {
  if (text == "=" && is_key()) return Value::string(text);
  try {
    return plain_scalar(text);
  } catch (const jinja::Refusal& refusal) {
    refuse(mark, refusal.what());
  }
}

Value YamlBuilder::scalar(const yaml_mark_t& mark, const std::string& tag,
                          const std::string& text) {
  if (tag == kStandard + "str") return Value::string(text);
  if (tag == kStandard + "null") return Value::none();
  if (tag == kFunction) {
    if (text.empty()) refuse(mark, "!function without a name; expected `!function file.name`");
    return function_value(text, what_);
  }
  const bool is_int = tag == kStandard + "int", is_float = tag == kStandard + "float";
  if (!is_int && !is_float && tag != kStandard + "bool")
    refuse(mark,
           "the tag " + shown(tag) +
               " is not supported; expected !function, !!str, !!int, !!float, !!bool or !!null",
           ErrorCode::kUnsupported);
  const Value value = plain(mark, text);
  if (is_float && value.is(Kind::kInteger)) return Value::number(value.as_float());
  if (!value.is(is_int ? Kind::kInteger : is_float ? Kind::kFloat : Kind::kBool))
    refuse(mark, shown(tag) + " of a scalar that is none");
  return value;
}

void YamlBuilder::add_scalar(const yaml_event_t& event) {
  const auto& one = event.data.scalar;
  const yaml_mark_t& mark = event.start_mark;
  const std::string text(reinterpret_cast<const char*>(one.value), one.length);
  const std::string anchor = text_of(one.anchor);
  std::string tag = text_of(one.tag);
  if (tag == "!") tag.clear();
  add_anchor(mark, anchor);
  if (tag.empty() && one.plain_implicit != 0 && text == "<<" && is_key()) {
    open_.back().has_key = open_.back().key_is_merge = true;
    return;
  }
  Value value = !tag.empty()              ? scalar(mark, tag, text)
                : one.plain_implicit != 0 ? plain(mark, text)
                                          : Value::string(text);
  put(mark, anchor, std::move(value), static_cast<int64_t>(text.size() / 64 + 1));
}

void YamlBuilder::open(const yaml_mark_t& mark, const std::string& anchor, const std::string& tag,
                       bool is_dict) {
  if (std::ssize(open_) >= limits_.max_depth)
    refuse(mark, fmt::format("nested deeper than {} levels", limits_.max_depth));
  add_anchor(mark, anchor);
  if (!tag.empty() && tag != "!" && tag != kStandard + (is_dict ? "map" : "seq"))
    refuse(mark,
           "the tag " + shown(tag) + " of a " + (is_dict ? "dict" : "list") +
               " is not supported; a function has the form `!function file.name`",
           ErrorCode::kUnsupported);
  Open one;
  one.mark = mark;
  one.anchor = anchor;
  one.is_dict = is_dict;
  open_.push_back(std::move(one));
}

void YamlBuilder::close() {
  Open closed = std::move(open_.back());
  open_.pop_back();
  num_nodes_ -= closed.num_nodes - 1;  // put() counts them again
  put(closed.mark, closed.anchor,
      closed.is_dict ? dict_of(closed) : Value::list(std::move(closed.items)), closed.num_nodes);
}

Value YamlBuilder::dict_of(Open& open) {
  auto dict = std::make_shared<jinja::Dict>();
  for (const auto& [source, mark] : open.merged) {
    for (const auto& [key, value] : source.as_dict().entries) {
      const Value* const former = dict->find(key);
      if (former != nullptr && !jinja::equal(*former, value))
        refuse(
            mark,
            "two dicts of << have different values of one key; write that key in the dict itself",
            ErrorCode::kUnsupported);
      dict->set(key, value);
    }
  }
  for (auto& [key, value] : open.pairs) dict->set(std::move(key), std::move(value));
  return Value::of(Kind::kDict, std::move(dict));
}

void YamlBuilder::merge(const yaml_mark_t& mark, const Value& value) {
  std::vector<Value> sources = {value};
  if (value.is(Kind::kSequence)) sources = value.as_sequence().items;
  for (const Value& source : sources) {
    if (!source.is(Kind::kDict))
      refuse(mark, "<< names a " + jinja::type_name(source) +
                       "; expected a dict, or a list of dicts, such as `<<: *anchor`");
    open_.back().merged.emplace_back(source, mark);
  }
}

void YamlBuilder::put(const yaml_mark_t& mark, const std::string& anchor, Value value,
                      int64_t num_nodes) {
  num_nodes_ += num_nodes;
  if (num_nodes_ > limits_.max_nodes)
    refuse(mark, fmt::format("more than {} values, aliases counted in full", limits_.max_nodes));
  if (!anchor.empty()) anchored_[anchor] = {value, num_nodes};
  if (open_.empty()) {
    root_ = std::move(value);
    return;
  }
  Open& parent = open_.back();
  parent.num_nodes += num_nodes;
  if (!parent.is_dict) {
    parent.items.push_back(std::move(value));
  } else if (!parent.has_key) {
    if (!can_be_key(value))
      refuse(mark, "a " + jinja::type_name(value) +
                       " as a key; expected text, a number, a bool or null. Text that begins with "
                       "{ or [ needs quotes");
    parent.key = std::move(value);
    parent.has_key = true;
  } else {
    if (parent.key_is_merge) {
      merge(mark, value);
    } else {
      parent.pairs.emplace_back(std::move(parent.key), std::move(value));
    }
    parent.has_key = parent.key_is_merge = false;
  }
}

}  // namespace skein
