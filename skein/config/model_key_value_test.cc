#include "skein/config/model_key_value.h"

#include <gtest/gtest.h>

#include "skein/base/error.h"
#include "skein/config/config.h"

namespace skein {
namespace {

Config parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_config(text, "run.toml", overrides);
}

bool is_refused(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse(text, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return true;
  }
  return false;
}

TEST(WholeNumbers, MayBeWrittenAsFloats) {
  EXPECT_EQ(parse("[run]\nsteps = 2e3\n").run.steps, 2000);
  EXPECT_EQ(parse("[data]\ncache_bytes = 4e9\n").data.cache_bytes, 4'000'000'000);
  EXPECT_EQ(parse("", {"checkpoint.memory_every_steps=-1.0"}).checkpoint.memory_every_steps, -1);
  EXPECT_EQ(
      parse("[model]\nhidden_size = 64.0\neos_token_id = [1, 2.0]\n").model.inline_keys.dump(),
      R"({"eos_token_id":[1,2],"hidden_size":64})");
}

TEST(WholeNumbers, AreNoOtherFloats) {
  for (const char* value : {"1e30", "-1e30", "nan", "inf", "-inf", "0.5", "true", "\"1\""}) {
    EXPECT_TRUE(is_refused("", {std::string("run.tokens=") + value})) << value;
    EXPECT_TRUE(is_refused(std::string("[model]\nhidden_size = ") + value)) << value;
  }
  EXPECT_TRUE(is_refused("[model]\neos_token_id = [1, 2.5]\n"));
  EXPECT_TRUE(is_refused("[log]\ntensorboard = 1.0\n"));
}

}  // namespace
}  // namespace skein
