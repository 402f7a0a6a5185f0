// Any bytes as the body of /v1/completions and /v1/chat/completions: each is refused with a status
// and a sentence, or asks for what the engine can do.
#include <cmath>
#include <cstdint>
#include <string_view>
#include <variant>

#include "skein/base/error.h"
#include "skein/serve/api/api_error.h"
#include "skein/serve/api/generation_request.h"

namespace {

void expect(bool condition) {
  if (!condition) __builtin_trap();
}

void check(const skein::GenerationRequest& request) {
  expect(request.n >= 1);
  expect(!request.max_tokens || *request.max_tokens >= 0);
  expect(!request.num_logprobs || (*request.num_logprobs >= 0 && *request.num_logprobs <= 20));
  const skein::SamplingOptions& sampling = request.sampling;
  expect(std::isfinite(sampling.temperature) && sampling.temperature >= 0);
  expect(sampling.top_p >= 0 && sampling.top_p <= 1);
  for (const std::string& stop : request.stop) expect(!stop.empty());
}

template <typename Parse>
void ask(const skein::Json& body, const Parse& parse) {
  try {
    parse(body);
  } catch (const skein::ApiError& error) {
    expect(error.status() >= 400 && error.status() < 500);
    expect(std::string_view(error.what()).size() > 3);
    expect(skein::Json::accept(error.body()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  skein::Json body;
  try {
    body = skein::parse_json(text, "the body");
  } catch (const skein::Error&) {
    return 0;
  }
  ask(body, [](const skein::Json& json) {
    const skein::CompletionRequest request = skein::completion_request(json);
    check(request);
    expect(!request.prompts.empty());
  });
  ask(body, [](const skein::Json& json) {
    const skein::ChatRequest request = skein::chat_request(json);
    check(request);
    expect(skein::Json::accept(request.messages));
  });
  return 0;
}
