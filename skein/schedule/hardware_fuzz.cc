// Any input either throws Error or gives a Hardware whose printed form reads back to an equal one.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "skein/base/error.h"
#include "skein/schedule/hardware.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  skein::Hardware hardware;
  try {
    hardware = skein::parse_hardware(text, "fuzz.toml");
  } catch (const skein::Error&) {
    return 0;
  }
  const std::string printed = skein::hardware_text(hardware);
  if (skein::parse_hardware(printed, "printed.toml") != hardware) std::abort();
  return 0;
}
