// Any bytes as a tekken.json or a tiktoken file are refused, or give a tokenizer.json that is read.
#include <cstdint>
#include <string>

#include "skein/base/error.h"
#include "skein/data/tokenizer/byte_level/byte_level_bpe.h"
#include "skein/data/tokenizer/folder/sources.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const char* const name : {"tekken.json", "tokenizer.model"}) {
    try {
      const skein::TokenizerSource source = skein::tokenizer_source_of(name, bytes, "fuzz");
      const skein::Json json = skein::parse_json(source.json, "fuzz");
      const skein::ByteLevelBpe tokenizer(skein::parse_byte_level_model(json, "fuzz"));
      std::vector<int32_t> ids;
      tokenizer.encode("the License's  shall 12345 <s>\n", ids, true);
      for (const int32_t id : ids) {
        if (id < 0 || id >= tokenizer.model().num_ids) __builtin_trap();
      }
      tokenizer.decode(ids);
    } catch (const skein::Error&) {
    }
  }
  return 0;
}
