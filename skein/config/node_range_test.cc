#include "skein/config/node_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skein/base/error.h"

namespace skein {
namespace {

using testing::HasSubstr;

Config config_of(const std::string& kind, int64_t workers, int64_t per_process) {
  Config config;
  config.device.kind = kind;
  config.launch.workers = workers;
  config.launch.workers_per_process = per_process;
  return config;
}

std::string refusal(const Config& config) {
  try {
    workers_per_process(config);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(WorkerProcesses, OneEachUnlessTheDeviceCompiles) {
  EXPECT_EQ(worker_processes(config_of("cpu", 4, 0)), 4);
  EXPECT_EQ(worker_processes(config_of("pjrt", 4, 0)), 1);
  EXPECT_EQ(worker_processes(config_of("pjrt", 4, 2)), 2);
  EXPECT_THAT(refusal(config_of("cuda", 4, 2)), HasSubstr("expected 1; only with \"pjrt\""));
}

TEST(WorkerProcesses, OfAPipelineShareAStage) {
  Config config = config_of("pjrt", 8, 0);
  config.parallel.pipeline = 2;
  config.parallel.tensor = 4;
  EXPECT_EQ(workers_per_process(config), 4);
  config.parallel.tensor = 1;
  EXPECT_EQ(workers_per_process(config), 1);
}

TEST(WorkerProcesses, HaveAsManyWorkersEach) {
  EXPECT_THAT(refusal(config_of("pjrt", 4, 3)), HasSubstr("does not divide launch.workers, 4"));
}

}  // namespace
}  // namespace skein
