// Any file: it is refused, or tells languages of a text.
#include <sys/mman.h>
#include <unistd.h>

#include <exception>

#include "skein/prepare/clean/language/language.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int file = ::memfd_create("model", MFD_CLOEXEC);
  if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    const auto model =
        std::make_shared<const skein::LanguageModel>("/proc/self/fd/" + std::to_string(file));
    skein::LanguageDetector(model).predict("the river was frozen und der fluss\xff </s>");
  } catch (const std::exception&) {
  }
  ::close(file);
  return 0;
}
