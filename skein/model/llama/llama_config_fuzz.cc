// Any bytes as config.json: either an Error, or a model that can be listed and written back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "skein/base/error.h"
#include "skein/model/llama/config.h"
#include "skein/model/llama/parameters.h"
#include "skein/model/llama/rope.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skein;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const LlamaConfig config = parse_llama_config(parse_json(text, "fuzz"), "fuzz", 64);
    const Json written = to_hugging_face_json(config, DType::kF32);
    if (parse_llama_config(written, "written") != config) std::abort();
    if (config.num_hidden_layers < 100 && num_parameters(config) <= 0) std::abort();
    if (config.head_dim < 4096) rope_inverse_frequencies(config);
  } catch (const Error&) {
  }
  return 0;
}
