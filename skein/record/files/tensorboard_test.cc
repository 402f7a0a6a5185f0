#include "skein/record/files/tensorboard.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "skein/base/error.h"
#include "tests/places.h"

namespace skein {
namespace {

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i - 1]);
  return value;
}

// The payloads of the TFRecords of a file.
std::vector<std::string> payloads(std::string_view file) {
  std::vector<std::string> events;
  while (!file.empty()) {
    const uint64_t size = little_endian(file.substr(0, 8));
    events.emplace_back(file.substr(12, size));
    file.remove_prefix(size + 16);
  }
  return events;
}

TEST(TensorBoard, Crc32cOfKnownBytes) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(TensorBoard, EqualsTheFileOfTensorBoardsOwnWriter) {
  const fs::path golden =
      fs::path(kSourceFolder) / "skein/record/files/testdata/tensorboard.tfevents";
  const Scalar scalars[] = {{"loss", 10.825f},
                            {"grad_norm", 0.0f},
                            {"model_flops_utilization", std::numeric_limits<float>::infinity()}};
  std::string file = tensorboard_version_record(1763636883.25);
  file += tensorboard_start_record(1763636883.25, 301);
  for (const int64_t step :
       {int64_t{0}, int64_t{1}, int64_t{127}, int64_t{128}, int64_t{1} << 40}) {
    file += tensorboard_scalars_record(1763636884.5, step, scalars);
  }
  EXPECT_TRUE(file == read_file(golden));
}

TEST(TensorBoard, WritesOneFileAWriter) {
  const fs::path folder = fs::path(testing::TempDir()) / "tensorboard";
  fs::remove_all(folder);
  TensorBoardWriter first(folder, 1);
  TensorBoardWriter second(folder, 3);
  EXPECT_NE(first.path(), second.path());
  EXPECT_EQ(first.path().filename().string().substr(0, 20), "events.out.tfevents.");
  first.write_step({.step = 1, .loss = 2}, 1 << 20, 0);
  first.write_validation(5, 1, "", 3);
  const std::vector<std::string> events = payloads(read_file(first.path()));
  ASSERT_EQ(events.size(), 4u);
  EXPECT_NE(events[0].find("brain.Event:2"), std::string::npos);
  for (const char* tag : {"loss", "learning_rate", "grad_norm", "param_norm", "tokens_per_s",
                          "model_flops_utilization", "step_ms", "memory_bytes", "grad_spike"}) {
    EXPECT_NE(events[2].find(tag), std::string::npos) << tag;
  }
  EXPECT_NE(events[3].find("validation_loss"), std::string::npos);
  EXPECT_EQ(payloads(read_file(second.path())).size(), 2u);
}

TEST(TensorBoard, SaysWhichFolderFails) {
  try {
    TensorBoardWriter writer("/dev/null/tensorboard", 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/dev/null/tensorboard"), std::string::npos);
  }
}

}  // namespace
}  // namespace skein
