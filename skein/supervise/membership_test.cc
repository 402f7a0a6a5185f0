#include "skein/supervise/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "skein/base/error.h"

namespace skein {
namespace {

using testing::HasSubstr;

HostRecord host(const std::string& name, int64_t beat = 1) {
  HostRecord record;
  record.host = name;
  record.beat = beat;
  record.workers = 2;
  record.checked = kNeedsNoCheck;
  return record;
}

HostRecord ended(HostRecord record, int64_t generation, Ending ending,
                 const std::string& message = "") {
  record.joined = record.ended = generation;
  record.ending = ending;
  record.message = message;
  return record;
}

HostRecord training(HostRecord record, int64_t generation) {
  record.joined = generation;
  return record;
}

GenerationRecord generation(int64_t number, const std::vector<std::string>& hosts) {
  GenerationRecord record;
  record.number = number;
  for (const std::string& name : hosts) record.members.push_back({name, 2});
  return record;
}

std::vector<std::string> names(const GenerationRecord& record) {
  std::vector<std::string> result;
  for (const auto& member : record.members) result.push_back(member.host);
  return result;
}

MembershipOptions options(int min_hosts, int max_hosts) {
  MembershipOptions options;
  options.min_hosts = min_hosts;
  options.max_hosts = max_hosts;
  return options;
}

using Names = std::vector<std::string>;

TEST(Membership, TheFirstByNameBeginsAsSoonAsAllHaveCome) {
  Membership a(options(2, 2), "a"), b(options(2, 2), "b");
  a.update({{host("a")}, std::nullopt}, 0);
  EXPECT_FALSE(a.next_generation(0));
  const StoreView both = {{host("b"), host("a")}, std::nullopt};
  a.update(both, 100);
  b.update(both, 100);
  EXPECT_FALSE(b.next_generation(100));
  const auto next = a.next_generation(100);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->number, 1);
  EXPECT_EQ(names(*next), (Names{"a", "b"}));
  EXPECT_EQ(next->num_ranks(), 4);
  EXPECT_EQ(next->first_rank("b"), 2);
}

TEST(Membership, BeginsWithFewerAfterAWhile) {
  Membership a(options(1, 3), "a");
  a.update({{host("a"), host("b")}, std::nullopt}, 0);
  EXPECT_FALSE(a.next_generation(0));
  EXPECT_FALSE(a.next_generation(59'000));
  const auto next = a.next_generation(60'000);
  ASSERT_TRUE(next);
  EXPECT_EQ(names(*next), (Names{"a", "b"}));
}

TEST(Membership, TooFewAreWaitedForAndThenNamed) {
  Membership a(options(3, 3), "a");
  Millis now = 0;
  std::optional<GenerationRecord> next;
  for (int64_t beat = 1; !next && now < 700'000; ++beat, now += 1'000) {
    a.update({{host("a", beat), host("b", beat)}, std::nullopt}, now);
    next = a.next_generation(now);
  }
  ASSERT_TRUE(next && next->verdict);
  EXPECT_EQ(now, 601'000);
  EXPECT_EQ(next->verdict->exit_code, 1);
  EXPECT_THAT(next->verdict->message, HasSubstr("3 machines at least: after 600 s these had come: "
                                                "a, b"));
}

TEST(Membership, AHostWhoseMachineRefusesIsWaitedForOnlyAMomentUntilItSpeaksAgain) {
  Membership a(options(1, 2), "a");
  const GenerationRecord both = generation(1, {"a", "b"});
  const HostRecord own = ended(host("a"), 1, Ending::kLostPeer);
  a.update({{training(host("a"), 1), training(host("b", 7), 1)}, both}, 0);
  EXPECT_EQ(a.awaited(), Names{});  // they train
  a.update({{own, training(host("b", 8), 1)}, both}, 1'000);
  EXPECT_EQ(a.awaited(), Names{"b"});
  a.host_refuses("b");
  EXPECT_EQ(a.awaited(), Names{});
  a.update({{own, training(host("b", 8), 1)}, both}, 2'900);
  EXPECT_FALSE(a.is_over(both));  // it may live behind a firewall
  a.update({{own, training(host("b", 9), 1)}, both}, 3'100);
  EXPECT_EQ(a.awaited(), Names{"b"});  // it does
  a.host_refuses("b");
  a.update({{own, training(host("b", 9), 1)}, both}, 5'100);
  EXPECT_TRUE(a.is_over(both));
}

// Of a host whose record stops changing.
class Lost : public testing::Test {
 protected:
  // Both hosts up to `now`, b with the same record from 1,000 on.
  void live_until(Membership& a, const HostRecord& own, const HostRecord& other, Millis until) {
    for (; now_ <= until; now_ += 1'000) {
      HostRecord mine = own;
      mine.beat = ++beat_;
      a.update({{mine, other}, generation(1, {"a", "b"})}, now_);
    }
  }
  Millis now_ = 0;
  int64_t beat_ = 0;
};

TEST_F(Lost, IsLeftOutAfterSilenceWhereAnotherMemberHasEnded) {
  Membership a(options(1, 2), "a");
  const HostRecord own = ended(host("a"), 1, Ending::kLostPeer), other = training(host("b", 5), 1);
  live_until(a, own, other, 9'000);
  EXPECT_FALSE(a.next_generation(now_));
  live_until(a, own, other, 11'000);
  const auto next = a.next_generation(now_);
  ASSERT_TRUE(next);
  EXPECT_EQ(names(*next), (Names{"a"}));
}

TEST_F(Lost, IsWaitedForMuchLongerWhereNobodyKnowsThatTheGenerationHasEnded) {
  Membership spare(options(1, 1), "a");
  const auto see = [&](Millis now) {
    spare.update({{host("a", ++beat_), training(host("b", 5), 1)}, generation(1, {"b"})}, now);
  };
  for (now_ = 0; now_ < 120'000; now_ += 1'000) see(now_);
  EXPECT_TRUE(spare.is_silent("b"));
  EXPECT_FALSE(spare.next_generation(now_));
  see(now_);
  EXPECT_TRUE(spare.next_generation(now_));
}

TEST_F(Lost, IsNotAHostThatNobodyCouldHear) {
  Membership a(options(1, 2), "a");
  a.update({{host("a", 1), host("b", 1)}, std::nullopt}, 0);
  a.update({{host("a", 2), host("b", 1)}, std::nullopt}, 500'000);  // the store was down
  EXPECT_FALSE(a.is_silent("b"));
}

TEST_F(Lost, HasEndedWhereItsMachineSaysSo) {
  Membership a(options(2, 2), "a");
  HostRecord again = host("c");
  again.succeeds = "b";
  a.update({{ended(host("a"), 1, Ending::kLostPeer), training(host("b"), 1), again},
            generation(1, {"a", "b"})},
           0);
  const auto next = a.next_generation(0);
  ASSERT_TRUE(next);
  EXPECT_EQ(names(*next), (Names{"a", "c"}));
}

TEST(Membership, NothingOlderThanBeforeIsBelieved) {
  Membership a(options(1, 1), "a");
  a.update({{host("a", 7)}, generation(2, {"a"})}, 0);
  a.update({{host("a", 3)}, generation(1, {"a"})}, 100);
  EXPECT_EQ(a.view().newest->number, 2);
  EXPECT_EQ(a.view().host("a")->beat, 7);
}

// Failures of one host, each with its step.
class Failures : public testing::Test {
 protected:
  std::optional<GenerationRecord> fail(Ending ending, const std::string& message, int64_t step) {
    HostRecord record = ended(host("a", ++beat_), last_.number, ending, message);
    record.step = step;
    a_.update({{record}, last_}, now_ += 100);
    std::optional<GenerationRecord> next = a_.next_generation(now_);
    waited_ = 0;
    while (!next) {
      waited_ += 100;
      next = a_.next_generation(now_ += 100);
    }
    last_ = *next;
    return next;
  }
  Membership a_{options(1, 1), "a"};
  GenerationRecord last_ = generation(1, {"a"});
  int64_t beat_ = 0;
  Millis now_ = 0, waited_ = 0;
};

TEST_F(Failures, TheFirstIsFollowedAtOnceAndLaterOnesByWaiting) {
  fail(Ending::kNoStorage, "no space", 10);
  EXPECT_EQ(waited_, 0);
  fail(Ending::kNoStorage, "no space", 10);
  EXPECT_EQ(waited_, 1'000);
  fail(Ending::kNoStorage, "no space", 10);
  EXPECT_EQ(waited_, 2'000);
  for (int i = 0; i < 10; ++i) fail(Ending::kNoStorage, "no space", 10);
  EXPECT_EQ(waited_, 60'000);
  fail(Ending::kNoStorage, "no space", 11);  // there was progress
  EXPECT_EQ(waited_, 0);
}

TEST_F(Failures, StorageThatFailsIsNoReasonToDistrustTheState) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(fail(Ending::kNoStorage, "no space", 10)->vain_starts, 0);
  EXPECT_EQ(fail(Ending::kKilled, "killed", 10)->vain_starts, 1);
  EXPECT_EQ(fail(Ending::kNoStorage, "no space", 10)->vain_starts, 1);
  EXPECT_EQ(last_.attempts, 7);
  EXPECT_EQ(fail(Ending::kKilled, "killed", 11)->vain_starts, 1) << "there was progress";
}

TEST_F(Failures, TheSameOneThreeTimesInARowEndsTheRun) {
  EXPECT_FALSE(fail(Ending::kCrashed, "segfault", 10)->verdict);
  EXPECT_FALSE(fail(Ending::kCrashed, "segfault", 10)->verdict);
  const auto end = fail(Ending::kCrashed, "segfault", 10);
  ASSERT_TRUE(end->verdict);
  EXPECT_EQ(end->verdict->exit_code, 1);
  EXPECT_THAT(end->verdict->message, HasSubstr("segfault; this was the same failure"));
}

TEST_F(Failures, OthersInBetweenOrProgressDoNot) {
  for (int step = 10; step < 20; ++step) {
    EXPECT_FALSE(fail(Ending::kCrashed, "segfault", step)->verdict);
    EXPECT_FALSE(fail(Ending::kKilled, "killed", step)->verdict);
    EXPECT_FALSE(fail(Ending::kCrashed, "segfault", step)->verdict);
  }
}

TEST_F(Failures, StorageThatIsMissingAtTheVeryBeginningEndsTheRunSoon) {
  EXPECT_FALSE(fail(Ending::kNoStorage, "permission denied", 0)->verdict);
  EXPECT_FALSE(fail(Ending::kNoStorage, "permission denied", 0)->verdict);
  EXPECT_TRUE(fail(Ending::kNoStorage, "permission denied", 0)->verdict);
}

TEST_F(Failures, WhatComesAtEveryStartEndsTheRunAtOnce) {
  const auto end = fail(Ending::kRefused, "the mesh does not fit", 0);
  ASSERT_TRUE(end->verdict);
  EXPECT_EQ(end->verdict->exit_code, 2);
  EXPECT_EQ(end->verdict->message, "the mesh does not fit");
}

TEST_F(Failures, TooManyWithoutANewStepEndTheRun) {
  int restarts = 0;
  while (!fail(Ending::kKilled, "killed", 10)->verdict) ++restarts;
  EXPECT_EQ(restarts, 100);
  EXPECT_THAT(last_.verdict->message, HasSubstr("launch.max_restarts = 100"));
}

TEST_F(Failures, WhatFinishedHasFinishedWhateverCameAfter) {
  Membership a(options(2, 2), "a");
  a.update({{ended(host("a"), 1, Ending::kFinished), ended(host("b"), 1, Ending::kLostPeer)},
            generation(1, {"a", "b"})},
           0);
  const auto end = a.next_generation(0);
  ASSERT_TRUE(end && end->verdict);
  EXPECT_EQ(end->verdict->exit_code, 0);
}

TEST(Membership, OneThatLeavesIsDoneWithoutWhereOthersAreEnough) {
  HostRecord leaves = ended(host("a"), 1, Ending::kStopped);
  leaves.leaving = true;
  const HostRecord stays = ended(host("b"), 1, Ending::kStopped);
  const StoreView view = {{leaves, stays}, generation(1, {"a", "b"})};

  Membership few(options(1, 2), "b");
  few.update(view, 0);
  EXPECT_FALSE(few.next_generation(0));  // b may be asked to stop as well
  ASSERT_TRUE(few.next_generation(1'000));
  EXPECT_EQ(names(*few.next_generation(1'000)), (Names{"b"}));

  Membership both(options(2, 2), "b");
  both.update(view, 0);
  both.next_generation(0);
  const auto end = both.next_generation(1'000);
  ASSERT_TRUE(end && end->verdict);
  EXPECT_EQ(end->verdict->exit_code, 75);
}

TEST(Membership, ASignalToAWorkerItselfEndsTheRun) {
  Membership a(options(1, 2), "a");
  a.update({{ended(host("a"), 1, Ending::kStopped), ended(host("b"), 1, Ending::kStopped)},
            generation(1, {"a", "b"})},
           0);
  const auto end = a.next_generation(0);
  ASSERT_TRUE(end && end->verdict);
  EXPECT_EQ(end->verdict->exit_code, 75);
}

HostRecord checked(HostRecord record, int64_t generation, const std::string& sick = "") {
  record.checked = generation;
  record.sick = sick;
  return record;
}

TEST(Health, OneThatIsSickIsLeftOut) {
  Membership a(options(2, 3), "a");
  const StoreView view = {{ended(host("a"), 1, Ending::kRegrouped),
                           checked(ended(host("b"), 1, Ending::kRegrouped), 2, "memory: a bit"),
                           ended(host("c"), 1, Ending::kRegrouped)},
                          generation(1, {"a", "b", "c"})};
  a.update(view, 0);
  EXPECT_THAT(a.waits_for(), HasSubstr("there are 2: a, c; left out: b: memory: a bit"));
  const auto next = a.next_generation(0);
  ASSERT_TRUE(next);
  EXPECT_EQ(names(*next), (Names{"a", "c"}));
}

TEST(Health, ACheckThatIsUnderWayIsWaitedForAndThenNotAnyMore) {
  Membership a(options(1, 2), "a");
  StoreView view = {{ended(host("a"), 1, Ending::kRegrouped),
                     checked(ended(host("b"), 1, Ending::kRegrouped), 1)},
                    generation(1, {"a", "b"})};
  a.update(view, 0);
  EXPECT_FALSE(a.next_generation(0));
  Membership other = a;
  EXPECT_FALSE(other.next_generation(14'999));
  const auto without = other.next_generation(15'000);
  ASSERT_TRUE(without);
  EXPECT_EQ(names(*without), (Names{"a"}));
  ++view.hosts.change()[1].beat;
  view.hosts.change()[1].checked = 2;
  a.update(view, 100);
  const auto both = a.next_generation(100);
  ASSERT_TRUE(both);
  EXPECT_EQ(names(*both), (Names{"a", "b"}));
}

TEST(Health, NobodyStopsForAHostThatIsSickOrHasNotCheckedItself) {
  Membership a(options(1, 2), "a");
  StoreView view = {{training(host("a"), 1), checked(host("b"), 0)}, generation(1, {"a"})};
  a.update(view, 0);
  EXPECT_FALSE(a.could_grow());
  view.hosts.change()[1] = checked(host("b", 2), 1, "clock: off");
  a.update(view, 0);
  EXPECT_FALSE(a.could_grow());
  view.hosts.change()[1] = checked(host("b", 3), 1);
  a.update(view, 0);
  EXPECT_TRUE(a.could_grow());
}

}  // namespace
}  // namespace skein
