// Any text as YAML: refused, or a value within its limits whose texts are UTF-8. A second reading
// of the same text gives an equal value.
#include <cstdint>
#include <string_view>

#include "skein/base/error.h"
#include "skein/base/text/visible_text.h"
#include "skein/evaluate/yaml/yaml_value.h"

namespace {

using skein::jinja::Kind;
using skein::jinja::Value;

// Every scalar of `value`, and how many values it has, aliases counted in full.
void check(const Value& value, int64_t& num_values) {
  if (++num_values > 100'000) __builtin_trap();
  if (value.is_string() && !skein::is_valid_utf8(value.text())) __builtin_trap();
  if (value.is(Kind::kSequence)) {
    for (const Value& item : value.as_sequence().items) check(item, num_values);
  }
  if (value.is(Kind::kDict)) {
    for (const auto& [key, item] : value.as_dict().entries) {
      check(key, num_values);
      check(item, num_values);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  skein::YamlLimits limits;
  limits.max_bytes = 1 << 16;
  limits.max_depth = 20;
  limits.max_nodes = 20'000;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const Value value = skein::yaml_value(text, "fuzz", limits);
    int64_t num_values = 0, num_again = 0;
    check(value, num_values);
    check(skein::yaml_value(text, "fuzz", limits), num_again);
    if (num_values != num_again) __builtin_trap();
  } catch (const skein::Error&) {
  }
  return 0;
}
