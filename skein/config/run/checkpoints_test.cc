#include "skein/config/run/checkpoints.h"

#include <gtest/gtest.h>

#include "tests/temp_folder.h"

namespace skein {
namespace {

using test::TempFolder;

void write_config(const TempFolder& run, const std::string& dir) {
  write_file_atomic(run / "config.toml", "[checkpoint]\ndir = \"" + dir + "\"\n");
}

TEST(RunCheckpoints, LieInTheRunOrWhereItsConfigurationSays) {
  const TempFolder run;
  EXPECT_EQ(checkpoints_inside(run.path()), run.path());
  fs::create_directory(run / "checkpoints");
  EXPECT_EQ(checkpoints_inside(run.path()), run / "checkpoints");
  write_config(run, "");
  EXPECT_EQ(checkpoints_inside(run.path()), run / "checkpoints");
  write_config(run, "{config_dir}/saved");
  EXPECT_EQ(checkpoints_inside(run.path()), run / "saved");
  write_config(run, "s3://bucket/run");
  EXPECT_EQ(checkpoints_inside(run.path()), "s3://bucket/run");
}

}  // namespace
}  // namespace skein
