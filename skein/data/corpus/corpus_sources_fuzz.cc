// Any bytes as the sources of a corpus must give an Error, or a source for each document.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "skein/base/error.h"
#include "skein/data/corpus/corpus_sources.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const skein::FileDescriptor file(::memfd_create("sources", MFD_CLOEXEC));
  if (::write(file.get(), data, size) != static_cast<ssize_t>(size)) return 0;
  try {
    const skein::CorpusSources sources("/proc/self/fd/" + std::to_string(file.get()));
    const int64_t num_documents = sources.num_documents();
    for (const int64_t document : {int64_t{-1}, int64_t{0}, num_documents / 2, num_documents - 1}) {
      try {
        int64_t num_bytes = 0;
        for (const char c : sources.find(document).path) num_bytes += 1 + 0 * c;
        if (num_bytes < 0) __builtin_trap();
      } catch (const skein::Error&) {
      }
    }
  } catch (const skein::Error&) {
  }
  return 0;
}
