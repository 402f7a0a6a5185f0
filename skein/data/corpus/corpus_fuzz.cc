// Any bytes as an Arrow IPC stream or file must give an Error, or documents that lie in bounds.
#include <cstdint>
#include <string>

#include "skein/base/error.h"
#include "skein/data/corpus/corpus.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto corpus =
        skein::Corpus::from_bytes({reinterpret_cast<const std::byte*>(data), size}, "fuzz");
    int64_t num_bytes = 0;
    for (int64_t i = 0; i < corpus.num_documents(); ++i) {
      int64_t last = 0;
      for (const skein::ByteRange& span : corpus.loss_spans(i)) {
        if (span.begin < last || span.end > corpus.document_bytes(i)) __builtin_trap();
        last = span.end;
      }
      for (const char c : corpus.document(i).str()) num_bytes += 1 + 0 * c;  // reads every byte
    }
    if (num_bytes > corpus.num_bytes()) __builtin_trap();
  } catch (const skein::Error&) {
  }
  return 0;
}
