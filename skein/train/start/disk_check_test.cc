#include "skein/train/start/disk_check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace skein {
namespace {

TEST(DiskCheck, TellsWhatCheckpointsLack) {
  const fs::path run = fs::path(testing::TempDir()) / fmt::format("disk-{}", ::getpid());
  Config config;
  config.run.dir = run.string();
  config.run.steps = 100;
  config.checkpoint.every_steps = 10;
  config.checkpoint.keep = 2;
  EXPECT_EQ(lack_of_disk(config, 1000), "");
  const std::string told = lack_of_disk(config, int64_t{1} << 60);
  for (const std::string& word : {(run / "checkpoints").string(), std::string("up to 3 of"),
                                  std::string("1.15 EB"), std::string("lower checkpoint.keep")}) {
    EXPECT_NE(told.find(word), std::string::npos) << told << "\nexpected: " << word;
  }
  config.checkpoint.dir = "s3://bucket/run";
  EXPECT_EQ(lack_of_disk(config, int64_t{1} << 60), "");
}

// A run that goes on has most of what it keeps already.
TEST(DiskCheck, CountsWhatIsThere) {
  const fs::path run = fs::path(testing::TempDir()) / fmt::format("disk-there-{}", ::getpid());
  fs::create_directories(run / "step-00000010");
  std::ofstream(run / "step-00000010" / "weights") << std::string(1500, 'x');
  EXPECT_EQ(disk_bytes_to_come(run, 3000, 1000), 1500);
  EXPECT_EQ(disk_bytes_to_come(run, 1800, 600), 600);
  fs::remove_all(run);
}

}  // namespace
}  // namespace skein
