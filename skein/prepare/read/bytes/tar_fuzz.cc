// Bytes as a tar archive, whose members are read to their ends, or in part, or not at all.
#include <cstdint>
#include <string_view>

#include "skein/base/error.h"
#include "skein/prepare/read/bytes/tar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  skein::is_tar(bytes);
  try {
    skein::TarReader archive(skein::read_memory(bytes), "fuzz");
    size_t num_bytes = 0;
    skein::TarMember member;
    for (int i = 0; archive.next(member); ++i) {
      if (member.name.starts_with('/') || member.name.starts_with("./")) __builtin_trap();
      if (member.left_out.empty() && member.name.find("../") == 0) __builtin_trap();
      char buffer[100];
      for (int reads = 0; reads < i % 8;) {
        const size_t count = archive.read_content(buffer);
        num_bytes += count;
        if (count == 0) break;
        reads += i % 2;  // of every second member all
      }
    }
    if (num_bytes > size) __builtin_trap();
  } catch (const skein::Error&) {
  }
  return 0;
}
