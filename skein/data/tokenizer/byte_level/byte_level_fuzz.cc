// Any bytes as a tokenizer.json are refused, or give a tokenizer that encodes and decodes.
#include <cstdint>
#include <string_view>
#include <vector>

#include "skein/base/error.h"
#include "skein/data/tokenizer/byte_level/byte_level_bpe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const skein::Json json = skein::parse_json({reinterpret_cast<const char*>(data), size}, "fuzz");
    const skein::ByteLevelBpe tokenizer(skein::parse_byte_level_model(json, "fuzz"));
    std::vector<int32_t> ids;
    for (const std::string_view text :
         {std::string_view("the License's  shall\n\tmean 12345 ＦＵＬＬ　漢字 e\u0301 <think>"),
          std::string_view("\0\xff\xf0 <|endoftext|>", 17), std::string_view()}) {
      tokenizer.encode(text, ids);
    }
    for (const int32_t id : ids) {
      if (id < 0 || id >= tokenizer.model().num_ids) __builtin_trap();
    }
    tokenizer.decode(ids);
  } catch (const skein::Error&) {
  }
  return 0;
}
