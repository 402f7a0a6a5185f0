// Any bytes as a SentencePiece model are refused, or give a tokenizer that encodes and decodes.
#include <cstdint>
#include <string_view>
#include <vector>

#include "skein/base/error.h"
#include "skein/data/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto tokenizer =
        skein::Tokenizer::from_model({reinterpret_cast<const char*>(data), size}, "fuzz");
    std::vector<int32_t> ids;
    for (const std::string_view text :
         {std::string_view("the License  shall\n\tmean 12 ＦＵＬＬ　漢字 e\u0301 return return"),
          std::string_view("\0\xff\xf0 <s> <0x41>", 14), std::string_view()}) {
      tokenizer->encode(text, ids);
    }
    for (const int32_t id : ids) {
      if (id < 0 || id >= tokenizer->vocab_size()) __builtin_trap();
    }
    tokenizer->decode(ids);
    if (tokenizer->why_not_exported().empty()) tokenizer->export_files();
  } catch (const skein::Error&) {
  }
  return 0;
}
