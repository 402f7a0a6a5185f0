#include "skein/train/start/same_arithmetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "skein/base/error.h"
#include "skein/base/files/file.h"

namespace skein {
namespace {

using testing::HasSubstr;

struct Said {
  std::string arithmetic, host;
};

// The error message, checked to be the same on every rank (threads here); "" where they agree.
std::string refusal(const std::vector<Said>& ranks) {
  std::string folder = testing::TempDir() + "/arithmetic_XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  std::vector<std::string> messages(ranks.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto world = make_world({.rank = static_cast<int>(rank),
                                       .size = static_cast<int>(ranks.size()),
                                       .rendezvous = folder});
        check_same_arithmetic(*world, ranks[rank].arithmetic, ranks[rank].host);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kUsage) << error.what();
        messages[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  fs::remove_all(folder);
  for (const std::string& message : messages) EXPECT_EQ(message, messages.front());
  return messages.front();
}

TEST(SameArithmetic, OneKindOnSeveralHosts) {
  EXPECT_EQ(refusal({{"avx2", "a"}}), "");
  EXPECT_EQ(refusal({{"avx2", "a"}, {"avx2", "a"}, {"avx2", "b"}}), "");
}

TEST(SameArithmetic, MixedKindsOfCpuAreRefusedWithOneThatAllHave) {
  EXPECT_EQ(
      refusal({{"avx512-bf16", "zen"}, {"avx512-bf16", "zen"}, {"avx2", "old"}}),
      "the ranks of this run would round differently, by their devices: avx2 on rank 2 (old); "
      "avx512-bf16 on ranks 0 to 1 (zen): start all of them on one kind of CPU, or set "
      "device.cpu = \"avx2\", which all of them have");
  EXPECT_THAT(refusal({{"avx512", "a"}, {"avx512-bf16", "b"}, {"avx512", "c"}}),
              HasSubstr("avx512 on ranks 0, 2 (a, c); avx512-bf16 on rank 1 (b): start all of them "
                        "on one kind of CPU, or set device.cpu = \"avx512\""));
}

TEST(SameArithmetic, MixedDevicesAreRefused) {
  EXPECT_THAT(refusal({{"avx2", "a"}, {"cuda NVIDIA H100 9.0", "b"}}),
              HasSubstr("avx2 on rank 0 (a); cuda NVIDIA H100 9.0 on rank 1 (b): start all of them "
                        "on one kind of device"));
  EXPECT_THAT(refusal({{"avx2", "a"}, {"neon", "b"}}),
              HasSubstr("start all of them on one kind of device"));
}

}  // namespace
}  // namespace skein
