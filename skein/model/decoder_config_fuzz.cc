// Any bytes as config.json either throw Error or give a model that can be listed and written back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "skein/base/error.h"
#include "skein/model/decoder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skein;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const DecoderConfig config = parse_decoder(parse_json(text, "fuzz"), "fuzz", 64);
    const Json written = to_hugging_face_json(config, DType::kF32);
    if (!(parse_decoder(written, "written") == config)) std::abort();
    if (config.num_hidden_layers < 100 && num_parameters(config) <= 0) std::abort();
    if (config.head_dim < 4096) {
      for (const DecoderTable& table : decoder_tables(config, 1)) table.values(1);
    }
  } catch (const Error&) {
  }
  return 0;
}
