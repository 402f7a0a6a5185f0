// Any text as a template: refused, or rendered within its limits to valid UTF-8.
#include <cstdint>
#include <string_view>

#include "skein/base/error.h"
#include "skein/base/text/visible_text.h"
#include "skein/jinja/template.h"
#include "skein/jinja/values/json_value.h"
#include "skein/jinja/values/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const skein::jinja::Value variables = skein::jinja::json_value(
      R"({"messages": [{"role": "system", "content": " be brief "},
                       {"role": "user", "content": "naïve 🙂"},
                       {"role": "assistant", "content": "ok", "tool_calls": [{"function":
                          {"name": "f", "arguments": {"a": [1, 2.5, null]}}}]}],
          "tools": null, "add_generation_prompt": true, "bos_token": "<s>", "n": 7})",
      "fuzz");
  skein::jinja::RenderOptions options;
  options.limits = {200'000, 4 << 20, 1 << 20, 300};
  options.now.emplace();
  try {
    const skein::jinja::Template chat({reinterpret_cast<const char*>(data), size}, "fuzz");
    const auto rendered = chat.render(variables, options);
    if (!skein::is_valid_utf8(rendered.text)) __builtin_trap();
    int64_t end = 0;
    for (const auto& span : rendered.generations) {
      if (span.begin < end || span.end < span.begin) __builtin_trap();
      end = span.end;
    }
    if (end > static_cast<int64_t>(rendered.text.size())) __builtin_trap();
  } catch (const skein::Error&) {
  }
  return 0;
}
