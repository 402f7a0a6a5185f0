// Any text must give an Error, or a record that reads back as it was written.
#include <cstdlib>
#include <string_view>

#include "skein/base/error.h"
#include "skein/supervise/records.h"

namespace {

using skein::Json;

void expect_same(const skein::OrderedJson& once, const skein::OrderedJson& again) {
  if (once != again) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Json json = skein::parse_json(text, "fuzz");
    if (json.is_object() && json.contains("number")) {
      const auto written = generation_to_json(skein::generation_from_json(json, "fuzz"));
      const auto read = skein::generation_from_json(Json::parse(written.dump()), "fuzz");
      expect_same(written, generation_to_json(read));
    } else {
      const auto written = host_to_json(skein::host_from_json(json, "fuzz"));
      expect_same(written,
                  host_to_json(skein::host_from_json(Json::parse(written.dump()), "fuzz")));
    }
  } catch (const skein::Error&) {
  }
  return 0;
}
