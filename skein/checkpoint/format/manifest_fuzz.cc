// Any text with a fitting checksum must give an Error, or a manifest that survives being written
// and read again.
#include <cstdlib>
#include <string>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/checkpoint/format/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  const std::string text = "{\"manifest_xxh3_128\": \"" +
                           skein::xxh3_128_hex(std::as_bytes(std::span(body))) + "\",\n" + body;
  try {
    const skein::Manifest manifest = skein::parse_manifest(text, "fuzz");
    if (skein::parse_manifest(skein::manifest_text(manifest), "fuzz") != manifest) std::abort();
  } catch (const skein::Error&) {
  }
  return 0;
}
