// Any text as model.safetensors.index.json must give an Error, or a map of plain file names.
#include <cstdlib>

#include "skein/base/error.h"
#include "skein/checkpoint/hugging_face/hugging_face.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const auto& [tensor, file] : skein::parse_hugging_face_index(text, "fuzz")) {
      if (file.find('/') != file.npos || skein::fs::path(file).filename() != file) std::abort();
    }
  } catch (const skein::Error&) {
  }
  return 0;
}
