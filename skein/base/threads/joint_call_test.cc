#include "skein/base/threads/joint_call.h"

#include <gtest/gtest.h>

#include <thread>

namespace skein {
namespace {

void run_members(size_t count, const std::function<void(size_t)>& body) {
  std::vector<std::thread> threads;
  for (size_t member = 0; member < count; ++member) threads.emplace_back(body, member);
  for (std::thread& thread : threads) thread.join();
}

TEST(JointCall, ActsOnceWithWhatEachBrought) {
  constexpr int kTimes = 200;
  JointCall<int> joint(3);
  int acts = 0;
  run_members(3, [&](size_t member) {
    for (int time = 0; time < kTimes; ++time) {
      int mine = time * 10 + static_cast<int>(member);
      joint.call(member, mine, [&](const std::vector<int*>& all) {
        ++acts;
        int sum = 0;
        for (const int* one : all) sum += *one;
        for (int* one : all) *one = sum;
      });
      EXPECT_EQ(mine, 30 * time + 3);
    }
  });
  EXPECT_EQ(acts, kTimes);
}

TEST(JointCall, GivesAnErrorToAll) {
  JointCall<int> joint(3);
  std::atomic<int> errors = 0;
  run_members(3, [&](size_t member) {
    int mine = 0;
    try {
      joint.call(member, mine, [](const auto&) { fail(ErrorCode::kIo, "the disk is full"); });
    } catch (const Error& error) {
      errors += error.code() == ErrorCode::kIo ? 1 : 0;
    }
    EXPECT_NO_THROW(joint.call(member, mine, [](const auto&) {}));
  });
  EXPECT_EQ(errors, 3);
}

TEST(JointCall, EndsForThoseWhoWaitAndThoseWhoCome) {
  JointCall<int> joint(3);
  std::atomic<int> told = 0;
  run_members(3, [&](size_t member) {
    if (member == 2) return joint.end("rank 2 failed");
    int mine = 0;
    try {
      joint.call(member, mine, [](const auto&) { FAIL() << "only two came"; });
    } catch (const Error& error) {
      told += error.code() == ErrorCode::kPeerLost && error.what() == std::string("rank 2 failed");
    }
  });
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace skein
