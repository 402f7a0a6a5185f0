#include "skein/infer/thread_team.h"

#include <gtest/gtest.h>

#include <set>

#include "skein/base/error.h"

namespace skein {
namespace {

TEST(ThreadTeam, CallsEveryMemberOnItsOwnThread) {
  ThreadTeam team(4);
  ASSERT_EQ(team.size(), 4);
  std::vector<std::thread::id> first(4), second(4);
  team.run(
      [&](int64_t member) { first[static_cast<size_t>(member)] = std::this_thread::get_id(); });
  team.run(
      [&](int64_t member) { second[static_cast<size_t>(member)] = std::this_thread::get_id(); });
  EXPECT_EQ(first, second);
  EXPECT_EQ(first[0], std::this_thread::get_id());
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 4U);
}

TEST(ThreadTeam, ThrowsTheErrorThatCameFirst) {
  ThreadTeam team(3);
  const auto thrown = [&](int64_t cause) -> std::string {
    try {
      team.run([&](int64_t member) {
        if (member == cause) fail(ErrorCode::kInvalid, "the cause");
        fail(ErrorCode::kPeerLost, "a peer is lost");
      });
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (int64_t cause = 0; cause < 3; ++cause) EXPECT_EQ(thrown(cause), "the cause");
  EXPECT_EQ(thrown(-1), "a peer is lost");
  int64_t calls = 0;
  std::mutex mutex;
  team.run([&](int64_t) {
    const std::lock_guard lock(mutex);
    ++calls;
  });
  EXPECT_EQ(calls, 3);
}

TEST(ThreadTeam, OfOneHasNoOtherThreads) {
  ThreadTeam team(1);
  int64_t last = -1;
  team.run([&](int64_t member) { last = member; });
  EXPECT_EQ(last, 0);
}

}  // namespace
}  // namespace skein
