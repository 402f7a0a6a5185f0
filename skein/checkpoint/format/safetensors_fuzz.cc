// Any bytes must give an Error, or a header whose tensors all lie inside the file.
#include <cstdlib>

#include "skein/base/error.h"
#include "skein/checkpoint/format/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  try {
    const skein::SafetensorsHeader header = skein::parse_safetensors_header(file, "fuzz");
    size_t covered = static_cast<size_t>(header.data_begin);
    for (const skein::SafetensorsEntry& entry : header.entries) {
      if (entry.begin != static_cast<int64_t>(covered) || entry.end < entry.begin) std::abort();
      covered = static_cast<size_t>(entry.end);
    }
    if (covered != size) std::abort();
  } catch (const skein::Error&) {
  }
  return 0;
}
