#include "skein/compile/step_programs.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(HeadBlockTokens, FillHalfAGigabyteOfADevicesOwnMemory) {
  Backend device, host;
  device.has_own_memory = true;
  const std::pair<int64_t, int64_t> expected[] = {
      {4096, 4096}, {32000, 4096}, {50304, 2624}, {128256, 2048}};
  for (const auto& [vocab_size, tokens] : expected) {
    DecoderConfig model;
    model.vocab_size = vocab_size;
    EXPECT_EQ(head_block_tokens(model, device), tokens) << vocab_size;
    EXPECT_EQ(head_block_tokens(model, host), 0) << "the decoder's choice";
  }
}

}  // namespace
}  // namespace skein
