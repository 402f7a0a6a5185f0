#include "skein/record/log/thread_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(ThreadAdvice, CallsThatAreTooShort) {
  // 50 MFLOP at 50 GFLOP/s are 1 ms for 2 threads, 2 ms for one.
  EXPECT_THAT(
      thread_advice(5e7, 100, 5e10, 2),
      testing::AllOf(testing::StartsWith("a step is 2.00 ms of work for one thread, in 100 calls"),
                     testing::HasSubstr("device.threads = 1")));
  EXPECT_EQ(thread_advice(5e7, 100, 5e10, 1), "");   // there is nothing to set
  EXPECT_EQ(thread_advice(5e8, 100, 5e10, 2), "");   // 10 ms are saved, as much as is waited
  EXPECT_NE(thread_advice(5e8, 200, 5e10, 2), "");   // in more calls
  EXPECT_EQ(thread_advice(5e7, 100, 5e10, 16), "");  // 15 ms
}

}  // namespace
}  // namespace skein
