// Any input either throws Error or gives a Config whose printed form reads back to an equal one.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "skein/base/error.h"
#include "skein/config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  skein::Config config;
  try {
    config = skein::parse_config(text, "fuzz.toml");
  } catch (const skein::Error&) {
    return 0;
  }
  const std::string printed = skein::config_text(config);
  if (skein::parse_config(printed, "printed.toml") != config) std::abort();
  return 0;
}
