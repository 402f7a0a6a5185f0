#include "skein/supervise/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "skein/base/error.h"

namespace skein {
namespace {

using Kind = Action::Kind;
using testing::HasSubstr;

// A supervisor of two workers, alone with a store that answers at once.
class Supervised : public testing::Test {
 protected:
  void begin(const MembershipOptions& membership = {}) {
    SupervisorOptions options;
    options.host = "a";
    options.workers = 2;
    options.hang = 10'000;
    options.membership = membership;
    supervisor_.emplace(options);
    supervisor_->start(now_);
    perform();
  }

  // Does what is asked of the store, and keeps the rest.
  void perform() {
    for (std::vector<Action> actions; !(actions = supervisor_->take_actions()).empty();) {
      for (Action& action : actions) {
        if (action.kind == Kind::kExchange) {
          if (!store_answers_) continue;
          const auto is_own = [](const HostRecord& host) { return host.host == "a"; };
          std::erase_if(store_.hosts.change(), is_own);
          store_.hosts.change().push_back(action.call.record);
          supervisor_->exchanged(store_, now_);
        } else if (action.kind == Kind::kCreate) {
          store_.newest = action.generation;
          supervisor_->created(Created::kYes, now_);
        } else if (action.kind == Kind::kCheckHost && checks_answer_) {
          supervisor_->host_checked(action.check, sickness_, now_);
        } else {
          done_.push_back(action.kind);
          last_ = action;
        }
      }
    }
  }
  void tick_until(Millis time) {
    while (now_ < time && !supervisor_->has_exited()) {
      now_ = std::min(time, supervisor_->next_time());
      supervisor_->tick(now_);
      perform();
    }
  }
  void beat(int index, int64_t progress, int64_t step = 0) {
    supervisor_->heartbeat(supervisor_->generation(), index, progress, step, false, now_);
    perform();
  }
  void end(int index, Ending ending, const std::string& message = "") {
    supervisor_->worker_ended(supervisor_->generation(), index, ending, message, now_);
    perform();
  }
  std::vector<Kind> take_done() { return std::exchange(done_, {}); }

  std::optional<Supervisor> supervisor_;
  StoreView store_;
  bool store_answers_ = true, checks_answer_ = true;
  std::string sickness_;  // what a check finds
  Millis now_ = 1'000'000;
  std::vector<Kind> done_;
  Action last_;
};

TEST_F(Supervised, ARunOnOneMachineBeginsAtOnceAndEndsWithItsWorkers) {
  begin();
  EXPECT_EQ(now_, 1'000'000);
  EXPECT_EQ(take_done(), std::vector{Kind::kStartWorkers});
  EXPECT_EQ(last_.generation.number, 1);
  end(0, Ending::kFinished);
  end(1, Ending::kFinished);
  EXPECT_EQ(take_done(), std::vector{Kind::kExit});
  EXPECT_EQ(last_.exit_code, 0);
}

TEST_F(Supervised, AHostChecksItselfBesideTheEndOfItsWorkers) {
  begin();
  take_done();
  checks_answer_ = false;
  end(0, Ending::kCrashed, "rank 0 crashed");
  EXPECT_EQ(take_done(), (std::vector{Kind::kEndWorkers, Kind::kCheckHost}));
  supervisor_->host_checked(last_.check, "", now_);
  perform();
  end(1, Ending::kKilled);
  EXPECT_EQ(take_done(), std::vector{Kind::kStartWorkers});
}

TEST_F(Supervised, ASickHostIsLeftOutAndChecksItselfAgainEverLessOften) {
  sickness_ = "storage: an error of 5";
  begin();
  EXPECT_EQ(take_done(), std::vector{Kind::kSay});
  EXPECT_THAT(last_.text, HasSubstr("is left out: storage: an error of 5"));
  tick_until(now_ + 4'999);
  EXPECT_THAT(last_.text, HasSubstr("waiting for 1 machine; there are 0: none; left out: a: stor"));
  take_done();
  tick_until(now_ + 1);
  EXPECT_THAT(last_.text, HasSubstr("again in 10 s"));
  take_done();
  sickness_ = "";
  tick_until(now_ + 10'000);
  EXPECT_EQ(take_done(), (std::vector{Kind::kSay, Kind::kStartWorkers}));
}

TEST_F(Supervised, ACheckThatPassesEveryOtherTimeIsMadeEverLessOftenAllTheSame) {
  begin();
  const auto fails_again_in = [&] {
    sickness_ = "product: wrong";
    end(0, Ending::kCrashed, fmt::format("rank 0 crashed at {}", now_));
    end(1, Ending::kKilled);
    const std::string text = last_.text;
    sickness_ = "";
    for (int i = 0; i < 120 && last_.kind != Kind::kStartWorkers; ++i) tick_until(now_ + 1'000);
    EXPECT_EQ(last_.kind, Kind::kStartWorkers);
    return text;
  };
  EXPECT_THAT(fails_again_in(), HasSubstr("again in 5 s"));
  EXPECT_THAT(fails_again_in(), HasSubstr("again in 10 s"));
  EXPECT_THAT(fails_again_in(), HasSubstr("again in 20 s"));
  for (int i = 1; i <= 120; ++i) {
    tick_until(now_ + 9'000);
    beat(0, i, i);
    beat(1, i, i);
  }
  EXPECT_THAT(fails_again_in(), HasSubstr("again in 20 s")) << "one of three times is forgotten";
}

TEST_F(Supervised, ACheckThatHangsIsKilledAndCountsAsFailed) {
  checks_answer_ = false;
  begin();
  EXPECT_EQ(take_done(), std::vector{Kind::kCheckHost});
  const int64_t check = last_.check;
  tick_until(now_ + 9'999);
  EXPECT_TRUE(take_done().empty());
  tick_until(now_ + 1);
  EXPECT_EQ(take_done(), (std::vector{Kind::kEndCheck, Kind::kSay}));
  supervisor_->host_checked(check, "", now_);
  perform();
  EXPECT_EQ(supervisor_->generation(), 0) << "an answer that comes too late is none";
}

TEST_F(Supervised, SicknessThatLastsEndsTheRunAndIsNamed) {
  sickness_ = "product: wrong";
  begin();
  tick_until(now_ + 600'000);
  EXPECT_TRUE(supervisor_->has_exited());
  EXPECT_EQ(last_.exit_code, 1);
  EXPECT_THAT(last_.text,
              HasSubstr("this machine could not train for 600 s; left out: a: product: wrong"));
}

TEST_F(Supervised, WrongBitsAreAnAccidentUntilTheyComeBack) {
  begin();
  int64_t step = 0;
  const auto wrong_at = [&](int64_t at) {
    beat(0, ++step, at);
    end(1, Ending::kWrongBits, fmt::format("rank 1: bits at {}", at));
    last_ = {};
    end(0, Ending::kLostPeer);
  };
  beat(0, ++step, 50);
  take_done();
  end(1, Ending::kWrongBits, "rank 1: bits");
  EXPECT_EQ(take_done(), std::vector{Kind::kEndWorkers});
  end(0, Ending::kLostPeer);
  EXPECT_EQ(take_done(), (std::vector{Kind::kWrongBits, Kind::kStartWorkers}));
  EXPECT_EQ(last_.generation.failure, "wrong bits at step 50: rank 1: bits");
  wrong_at(50 + kSoonWrongAgain);
  EXPECT_EQ(take_done(), (std::vector{Kind::kEndWorkers, Kind::kWrongBits, Kind::kStartWorkers}));
  wrong_at(10'000);
  EXPECT_EQ(take_done(), (std::vector{Kind::kEndWorkers, Kind::kWrongBits, Kind::kExit}))
      << "the third time";
  EXPECT_EQ(last_.exit_code, 1);
  EXPECT_THAT(last_.text, HasSubstr("bits at 10000"));
  EXPECT_THAT(last_.text, HasSubstr("no other one to continue with"));
}

TEST_F(Supervised, WrongBitsThatComeBackSoonLeaveTheHostOutForGood) {
  begin({.max_hosts = 2, .gather = 0});
  beat(0, 1, 50);
  end(1, Ending::kWrongBits, "rank 1: bits");
  end(0, Ending::kLostPeer);
  beat(0, 2, 50 + kSoonWrongAgain - 1);
  end(0, Ending::kLostPeer);
  take_done();
  end(1, Ending::kWrongBits, "rank 1: bits again");
  EXPECT_EQ(take_done(), std::vector{Kind::kWrongBits});
  EXPECT_TRUE(last_.persistent);
  tick_until(now_ + 120'000);
  EXPECT_EQ(supervisor_->generation(), 0);
  EXPECT_EQ(take_done(), std::vector{Kind::kSay}) << "it checks itself no more";
  EXPECT_THAT(last_.text, HasSubstr("left out: a: rank 1: bits again"));
}

TEST_F(Supervised, AFailedCheckBesideWrongBitsIsNoSecondTime) {
  begin();
  sickness_ = "product: wrong";
  end(1, Ending::kWrongBits, "rank 1: bits");
  end(0, Ending::kLostPeer);
  EXPECT_FALSE(supervisor_->has_exited());
  sickness_ = "";
  tick_until(now_ + 10'000);
  EXPECT_EQ(last_.kind, Kind::kStartWorkers);
}

TEST_F(Supervised, WrongBitsThatComeBackDoNotEndARunThatHasASpare) {
  HostRecord spare;
  spare.host = "b";
  spare.workers = 2;
  spare.sick = "product: wrong";  // it may get well
  store_.hosts = {spare};
  begin();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(supervisor_->generation(), i + 1);
    end(1, Ending::kWrongBits, "rank 1: bits");
    end(0, Ending::kLostPeer);
  }
  tick_until(now_ + 60'000);
  EXPECT_FALSE(supervisor_->has_exited());
  EXPECT_THAT(last_.text, HasSubstr("left out: a: rank 1: bits"));
}

TEST_F(Supervised, OneThatHangsIsKilledAfterItsStacks) {
  begin();
  take_done();
  for (int i = 1; i <= 5; ++i) {
    tick_until(now_ + 3'000);
    beat(0, i);
  }
  EXPECT_EQ(take_done(), (std::vector{Kind::kDumpStacks, Kind::kKillWorkers}));
  end(0, Ending::kKilled);
  end(1, Ending::kKilled);
  EXPECT_EQ(store_.newest->number, 2);
  EXPECT_THAT(store_.newest->failure, HasSubstr("hung at step 0: rank 1 made no progress"));
}

TEST_F(Supervised, AFailureEndsTheOthersAndTheStubbornAreKilled) {
  begin();
  take_done();
  end(0, Ending::kCrashed, "rank 0 crashed");
  EXPECT_EQ(take_done(), std::vector{Kind::kEndWorkers});
  tick_until(now_ + 4'999);
  EXPECT_TRUE(take_done().empty());
  tick_until(now_ + 1);
  EXPECT_EQ(take_done(), std::vector{Kind::kKillWorkers});
  end(1, Ending::kKilled, "killed");
  EXPECT_EQ(take_done(), std::vector{Kind::kStartWorkers});
  EXPECT_THAT(store_.newest->failure, HasSubstr("rank 0 crashed"));
}

TEST_F(Supervised, TheCauseMayComeAfterItsConsequence) {
  begin();
  take_done();
  end(0, Ending::kLostPeer, "rank 1 is gone");
  EXPECT_TRUE(take_done().empty());
  tick_until(now_ + 1'000);
  end(1, Ending::kOutOfMemory, "rank 1 was too large");
  EXPECT_THAT(store_.newest->failure, HasSubstr("no memory at step 0: rank 1 was too large"));
}

TEST_F(Supervised, ASignalIsPassedOnAndEndsTheRun) {
  begin();
  take_done();
  supervisor_->asked_to_stop(10, false, now_);
  perform();
  EXPECT_EQ(take_done(), std::vector{Kind::kAskWorkers});
  EXPECT_EQ(last_.signal, 10);
  end(0, Ending::kStopped);
  end(1, Ending::kStopped);
  EXPECT_EQ(take_done(), std::vector{Kind::kExit});
  EXPECT_EQ(last_.exit_code, 75);
}

TEST_F(Supervised, AStopThatCouldNotSaveDoesNotEndAsOneThatDid) {
  begin();
  take_done();
  supervisor_->asked_to_stop(15, false, now_);
  perform();
  end(0, Ending::kNoStorage, "step 7 was not saved: the disk is full");
  end(1, Ending::kLostPeer, "rank 0 is gone");
  tick_until(now_ + 600'000);
  ASSERT_TRUE(supervisor_->has_exited());
  EXPECT_EQ(last_.exit_code, 1);
  EXPECT_EQ(last_.text, "step 7 was not saved: the disk is full");
}

TEST_F(Supervised, TwoSignalsEndItAtOnce) {
  begin();
  take_done();
  supervisor_->asked_to_stop(2, true, now_);
  perform();
  EXPECT_EQ(take_done(), (std::vector{Kind::kKillWorkers, Kind::kExit}));
  EXPECT_EQ(last_.exit_code, 1);
}

TEST_F(Supervised, WithoutTheStoreWorkersEndBeforeOthersMayBegin) {
  begin();
  take_done();
  store_answers_ = false;
  const Millis last_exchange = now_;
  for (int i = 1; take_done().empty(); ++i) {
    tick_until(now_ + 1'000);
    beat(0, i);
    beat(1, i);
  }
  EXPECT_LT(now_, last_exchange + MembershipOptions().fence);
  EXPECT_GE(now_ + 2'000, supervisor_->permitted_until());
}

TEST_F(Supervised, ANewcomerIsTakenInAfterAStep) {
  MembershipOptions membership;
  membership.max_hosts = 2;
  membership.gather = 0;
  begin(membership);
  EXPECT_EQ(take_done(), std::vector{Kind::kStartWorkers});
  HostRecord newcomer;
  newcomer.host = "b";
  newcomer.workers = 2;
  newcomer.checked = 1;
  for (int i = 1; i <= 20; ++i) {
    newcomer.beat = i;
    std::erase_if(store_.hosts.change(), [](const HostRecord& host) { return host.host == "b"; });
    store_.hosts.change().push_back(newcomer);
    tick_until(now_ + 1'000);
    beat(0, i, i / 5);
    beat(1, i, i / 5);
    if (i == 14) {
      EXPECT_TRUE(take_done().empty()) << "the first step was 5 s after the start";
    }
  }
  EXPECT_EQ(take_done(), (std::vector{Kind::kSay, Kind::kAskWorkers}));
  EXPECT_EQ(last_.signal, kRegroup);
  store_.hosts.change().front().checked = 2;
  end(0, Ending::kRegrouped);
  end(1, Ending::kRegrouped);
  EXPECT_EQ(take_done(), std::vector{Kind::kStartWorkers});
  EXPECT_EQ(last_.generation.num_ranks(), 4);
  EXPECT_EQ(last_.generation.attempts, 0);
}

}  // namespace
}  // namespace skein
