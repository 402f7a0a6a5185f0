#include "skein/record/log/thread_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// At 50 GFLOP/s of both threads.
StepWork work(double flops, int64_t num_calls, int threads = 2) {
  return {.flops = flops, .num_calls = num_calls, .flops_per_s = 5e10, .threads = threads};
}

TEST(ThreadAdvice, CallsThatAreTooShort) {
  // 50 MFLOP are 1 ms for 2 threads, 2 ms for one.
  EXPECT_THAT(thread_advice(work(5e7, 100)),
              AllOf(StartsWith("a step is 2.00 ms of work for one thread, in 100 calls"),
                    HasSubstr("device.threads = 1")));
  EXPECT_EQ(thread_advice(work(5e7, 100, 1)), "");   // there is nothing to set
  EXPECT_EQ(thread_advice(work(5e8, 100)), "");      // 10 ms are saved, as much as is waited
  EXPECT_NE(thread_advice(work(5e8, 200)), "");      // in more calls
  EXPECT_EQ(thread_advice(work(5e7, 100, 16)), "");  // 15 ms
}

// What a watch says after the first step, of 1 s, and then so many of `seconds`.
std::string said_after(int steps, const StepWork& work, double seconds) {
  SlowThreads watch;
  std::string said = watch.after_step(work, 1.0);
  for (int i = 0; i < steps; ++i) said += watch.after_step(work, seconds);
  return said;
}

TEST(SlowThreads, StepsThatWaitForCores) {
  const StepWork small = work(5e7, 100);  // 2 ms for one thread
  EXPECT_EQ(said_after(19, small, 0.049), "");
  EXPECT_THAT(said_after(20, small, 0.049),
              AllOf(StartsWith("a step takes 49.0 ms, and its work takes one thread about 2.00 ms"),
                    HasSubstr("--set device.threads=1")));
  EXPECT_EQ(said_after(500, small, 0.049), said_after(20, small, 0.049));  // once
}

TEST(SlowThreads, StepsThatAreSlowForOtherReasons) {
  EXPECT_EQ(said_after(40, work(5e7, 100), 0.007), "");     // not far from its work
  EXPECT_EQ(said_after(40, work(5e7, 1000), 0.049), "");    // 0.05 ms a call: as on idle cores
  EXPECT_EQ(said_after(40, work(5e7, 100, 1), 0.049), "");  // one thread waits for nobody
  EXPECT_EQ(said_after(40, work(5e9, 100), 0.49), "");      // 200 ms of work
}

}  // namespace
}  // namespace skein
