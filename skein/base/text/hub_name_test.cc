#include "skein/base/text/hub_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(HubName, IsToldHowToBeBrought) {
  EXPECT_EQ(
      hub_advice("Qwen/Qwen3-0.6B"),
      "; if this is a model of the Hugging Face Hub, `hf download Qwen/Qwen3-0.6B --local-dir "
      "Qwen3-0.6B` brings it: then name the folder Qwen3-0.6B");
  EXPECT_THAT(hub_advice("HuggingFaceFW/fineweb", "dataset"),
              testing::HasSubstr("--repo-type dataset --local-dir fineweb"));
}

TEST(HubName, OtherPathsAreNone) {
  for (const char* path : {"", "model", "/a/b", "./a/b", "../a", "a/b/c", "a/", "s3://a/b", "~/a",
                           "a b/c", ".hidden/x"}) {
    EXPECT_EQ(hub_advice(path), "") << path;
  }
}

}  // namespace
}  // namespace skein
