// Runs a test body as several ranks of one process: threads, meeting in a temporary folder.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "skein/comm/communicator.h"
#include "skein/store/job_secret.h"
#include "tests/comm/deadlines.h"

namespace skein::comm_test {

// `body` runs in every rank; it may use EXPECT.
inline void run_rank_threads(int size, const std::function<void(const WorldOptions&)>& body) {
  std::string folder = (std::filesystem::temp_directory_path() / "skein-ranks-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body({.rank = rank,
              .size = size,
              .rendezvous = folder,
              .secret = std::make_shared<JobSecret>("the secret of a test", "test"),
              .timeout_s = kDeadlineS});
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << " threw: " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

}  // namespace skein::comm_test
