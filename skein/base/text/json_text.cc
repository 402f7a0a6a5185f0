#include "skein/base/text/json_text.h"

#include <optional>

#include "skein/base/error.h"
#include "skein/base/text/visible_text.h"

namespace skein {
namespace {

constexpr int64_t kShownCharacters = 300;

template <typename AnyJson>
std::string replaced(const AnyJson& json, int indent, bool ascii) {
  return json.dump(indent, ' ', ascii, AnyJson::error_handler_t::replace);
}

// A string of `json` that is not UTF-8, and the keys that lead to it.
template <typename AnyJson>
std::optional<std::string> find_foreign(const AnyJson& json, std::string& place) {
  if (json.is_string()) {
    const auto& text = json.template get_ref<const std::string&>();
    return is_valid_utf8(text) ? std::nullopt : std::optional(text);
  }
  if (!json.is_structured()) return std::nullopt;
  for (const auto& [key, value] : json.items()) {
    std::string inside = place + (place.empty() ? "" : ".") + visible_text(key, kShownCharacters);
    auto found = json.is_object() && !is_valid_utf8(key) ? std::optional<std::string>(key)
                                                         : find_foreign(value, inside);
    if (!found) continue;
    place = inside;
    return found;
  }
  return std::nullopt;
}

template <typename AnyJson>
std::string exact(const AnyJson& json, const std::string& what, int indent) {
  try {
    return json.dump(indent);
  } catch (const typename AnyJson::type_error&) {
    std::string place;
    const std::optional<std::string> found = find_foreign(json, place);
    if (!found) throw;
    fail(ErrorCode::kInvalid,
         "{}: {}{}'{}' is not UTF-8, which is all that JSON holds: rename what has this name, or "
         "write the text in UTF-8",
         what, place, place.empty() ? "" : ": ", visible_text(*found, kShownCharacters));
  }
}

}  // namespace

std::string json_text(const Json& json, int indent) { return replaced(json, indent, false); }
std::string json_text(const OrderedJson& json, int indent) { return replaced(json, indent, false); }

std::string ascii_json_text(const Json& json) { return replaced(json, -1, true); }
std::string ascii_json_text(const OrderedJson& json) { return replaced(json, -1, true); }

std::string exact_json(const Json& json, const std::string& what, int indent) {
  return exact(json, what, indent);
}
std::string exact_json(const OrderedJson& json, const std::string& what, int indent) {
  return exact(json, what, indent);
}

}  // namespace skein
