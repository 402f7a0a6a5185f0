#include "skein/record/report/time_ledger.h"

#include <gtest/gtest.h>

#include <random>

namespace skein {
namespace {

using Part = TimePart;

// What a machine writes: its clock starts at 1000, its wall clock may be set.
struct Machine {
  std::string name;
  double wall = 100'000, clock = 1000;
  std::string boot = "0a1b2c3d";
  void pass(double seconds) { wall += seconds, clock += seconds; }
  Json event(const std::string& what, Json fields = Json::object()) const {
    fields.update(
        {{"event", what}, {"time", wall}, {"clock", clock}, {"host", name}, {"boot", boot}});
    return fields;
  }
  StepMetrics step(int64_t step, int64_t start, float ms = 1000) const {
    return {.step = step, .step_ms = ms, .time = wall, .start = start, .clock = clock};
  }
};

Json start(int64_t number, int64_t step, double launched, double waited = 0,
           int64_t generation = 1) {
  return {{"number", number},
          {"step", step},
          {"launched_seconds", launched},
          {"waited_seconds", waited},
          {"generation", generation}};
}

// Launched 3 s before its start, of which 1 s was waiting; steps of a second.
void train(TimeLedger& ledger, Machine& machine, int64_t number, int64_t first, int64_t last) {
  for (int64_t step = first; step <= last; ++step) {
    machine.pass(1);
    ledger.add_step(machine.step(step, number));
  }
}

// Where there is no /proc nobody knows whether the machine was started again in between: its clock
// is then a smaller or a larger one, and the wall clock counts.
TEST(TimeLedger, ABootWithoutANameIsNoOther) {
  for (const double clock_after : {5.0, 900'000.0}) {
    TimeLedger ledger;
    Machine a{.name = "a", .boot = ""};
    ledger.add_event(a.event("start", start(1, 0, 0)));
    train(ledger, a, 1, 1, 4);
    a.wall += 60;
    a.clock = clock_after;
    ledger.add_event(a.event("start", start(2, 4, 0)));
    train(ledger, a, 2, 5, 8);
    ledger.add_event(a.event("stop", {{"reason", "done"}}));
    ledger.settle();
    EXPECT_EQ(ledger.micros(Part::kProductive), 8'000'000);
    EXPECT_EQ(ledger.total_micros(), 68'000'000) << clock_after;
  }
}

TEST(TimeLedger, ARunThatIsLeftAlone) {
  TimeLedger ledger;
  Machine a{"a"};
  ledger.add_event(a.event("start", start(1, 0, 3, 1)));
  a.pass(0.5);  // until the first step begins
  train(ledger, a, 1, 1, 4);
  a.pass(2);
  ledger.add_event(a.event("validation", {{"seconds", 0.25}}));
  a.pass(0.5);
  ledger.add_event(a.event("stop", {{"reason", "done"}}));
  ledger.settle();
  EXPECT_EQ(ledger.micros(Part::kWaiting), 1'000'000);
  EXPECT_EQ(ledger.micros(Part::kStarting), 2'500'000);
  EXPECT_EQ(ledger.micros(Part::kProductive), 4'000'000);
  EXPECT_EQ(ledger.micros(Part::kValidating), 250'000);
  EXPECT_EQ(ledger.micros(Part::kSaving), 2'250'000);
  EXPECT_EQ(ledger.total_micros(), 10'000'000);
  EXPECT_DOUBLE_EQ(ledger.goodput(), 0.4);
}

TEST(TimeLedger, AFailureIsDetectedRecoveredFromAndItsStepsAreRedone) {
  TimeLedger ledger;
  Machine a{"a"};
  ledger.add_event(a.event("start", start(1, 0, 1)));
  train(ledger, a, 1, 1, 6);
  a.pass(5);  // 2 s until it is known, 3 s until the next generation, of them 1 s a back-off
  ledger.add_event(
      a.event("generation", {{"generation", 2}, {"known_seconds", 3}, {"waited_seconds", 1}}));
  a.pass(4);
  ledger.add_event(a.event("start", start(2, 4, 20, 1, 2)));
  train(ledger, a, 2, 5, 8);
  ledger.settle();
  EXPECT_EQ(ledger.micros(Part::kStarting), 1'000'000);
  EXPECT_EQ(ledger.micros(Part::kDetecting), 2'000'000);
  EXPECT_EQ(ledger.micros(Part::kWaiting), 1'000'000);
  EXPECT_EQ(ledger.micros(Part::kRecovering), 6'000'000);
  EXPECT_EQ(ledger.micros(Part::kRedone), 2'000'000);
  EXPECT_EQ(ledger.micros(Part::kProductive), 8'000'000);
  EXPECT_EQ(ledger.total_micros(), 20'000'000);
  EXPECT_EQ(ledger.between_starts_micros(), 0);
}

// A generation that fails before its first step is part of the recovery.
TEST(TimeLedger, ARecoveryThatFailsGoesOn) {
  TimeLedger ledger;
  Machine a{"a"};
  ledger.add_event(a.event("start", start(1, 0, 0)));
  train(ledger, a, 1, 1, 2);
  for (int generation = 2; generation <= 3; ++generation) {
    a.pass(3);
    ledger.add_event(a.event("generation", {{"known_seconds", 2}}));
    a.pass(1);
    ledger.add_event(a.event("start", start(generation, 2, 20, 0, generation)));
  }
  train(ledger, a, 3, 3, 3);
  ledger.settle();
  EXPECT_EQ(ledger.micros(Part::kDetecting), 1'000'000);
  EXPECT_EQ(ledger.micros(Part::kRecovering), 7'000'000);
  EXPECT_EQ(ledger.total_micros(), 11'000'000);
}

TEST(TimeLedger, TimeBetweenStartsIsWaiting) {
  TimeLedger ledger;
  Machine a{"a"};
  ledger.add_event(a.event("start", start(1, 0, 1)));
  train(ledger, a, 1, 1, 3);
  a.pass(1);
  ledger.add_event(a.event("stop", {{"reason", "SIGTERM"}}));
  a.pass(3600);
  ledger.add_event(a.event("start", start(2, 3, 2)));
  train(ledger, a, 2, 4, 4);  // and is killed with all that would have said so
  a.pass(50);
  ledger.add_event(a.event("start", start(3, 3, 2)));
  train(ledger, a, 3, 4, 4);
  ledger.settle();
  EXPECT_EQ(ledger.micros(Part::kWaiting), 3'646'000'000);
  EXPECT_EQ(ledger.between_starts_micros(), 3'646'000'000);
  EXPECT_EQ(ledger.micros(Part::kSaving), 1'000'000);
  EXPECT_EQ(ledger.micros(Part::kStarting), 5'000'000);
  EXPECT_EQ(ledger.micros(Part::kRedone), 1'000'000);
  EXPECT_EQ(ledger.micros(Part::kProductive), 4'000'000);
}

TEST(TimeLedger, AWallClockThatIsSetMovesNothing) {
  TimeLedger ledger;
  Machine a{"a"};
  ledger.add_event(a.event("start", start(1, 0, 1)));
  train(ledger, a, 1, 1, 3);
  a.wall -= 3600;
  train(ledger, a, 1, 4, 6);
  a.pass(2);
  ledger.add_event(a.event("generation", {{"known_seconds", 1}}));
  a.wall += 86'400;
  a.pass(1);
  ledger.add_event(a.event("start", start(2, 6, 9, 0, 2)));
  train(ledger, a, 2, 7, 8);
  ledger.settle();
  EXPECT_EQ(ledger.micros(Part::kProductive), 8'000'000);
  EXPECT_EQ(ledger.micros(Part::kDetecting), 1'000'000);
  EXPECT_EQ(ledger.micros(Part::kRecovering), 2'000'000);
  EXPECT_EQ(ledger.total_micros(), 12'000'000);
}

// The machine that leads changes, and the other one's clock is a minute behind.
TEST(TimeLedger, AnotherMachineIsPlacedByItsWallClockAndNeverBackwards) {
  TimeLedger ledger;
  Machine a{"a"}, b{"b", 100'000 - 60, 70};
  ledger.add_event(a.event("start", start(1, 0, 0)));
  train(ledger, a, 1, 1, 3);
  b.pass(10);
  ledger.add_event(b.event("generation", {{"known_seconds", 2}}));
  b.pass(3);
  ledger.add_event(b.event("start", start(2, 3, 9, 0, 2)));
  train(ledger, b, 2, 4, 9);
  ledger.settle();
  EXPECT_EQ(ledger.micros(Part::kProductive), 9'000'000);
  EXPECT_EQ(ledger.micros(Part::kRecovering), 3'000'000);
}

TEST(TimeLedger, FilesOfOlderVersionsHoldWallClocksAlone) {
  TimeLedger ledger;
  const auto event = [](double time, const char* name, int64_t step) {
    return Json{{"time", time}, {"event", name}, {"step", step}};
  };
  ledger.add_event(event(100, "start", 0));
  for (int step = 1; step <= 3; ++step) {
    ledger.add_step({.step = step, .step_ms = 1000, .time = 100.0 + step});
  }
  ledger.add_step({.step = 4, .step_ms = 1000, .time = 50});  // the clock was set back
  ledger.settle();
  EXPECT_EQ(ledger.micros(Part::kProductive), 4'000'000);
  EXPECT_EQ(ledger.total_micros(), 4'000'000);
}

// Whatever happens, and however the files are read: the parts are the whole.
TEST(TimeLedger, ThePartsAddUpToTheWhole) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto seconds = [&] { return static_cast<double>(random() % 5'000'000) / 1e6; };
    TimeLedger whole, piecewise;
    const auto add_event = [&](const Json& event) {
      whole.add_event(event);
      piecewise.add_event(event);
    };
    Machine a{"a"};
    const double launched = seconds();
    const double begin = a.clock - launched;
    double end = a.clock;
    add_event(a.event("start", start(1, 0, launched, seconds())));
    int64_t step = 0, number = 1;
    bool trains = true;
    for (int i = 0; i < 60; ++i) {
      a.pass(seconds());
      const unsigned chance = random() % 6;
      switch (trains || chance < 2 ? chance : 1) {
        case 0:
          add_event(
              a.event("generation", {{"known_seconds", seconds()}, {"waited_seconds", seconds()}}));
          trains = false;
          break;
        case 1:
          step = static_cast<int64_t>(random() % static_cast<unsigned>(step + 1));
          add_event(a.event("start", start(++number, step, seconds(), seconds(),
                                           static_cast<int64_t>(random() % 3))));
          trains = true;
          break;
        case 2:
          add_event(a.event("stop", {{"reason", random() % 2 == 0 ? "regroup" : "SIGTERM"}}));
          trains = false;
          break;
        case 3:
          add_event(a.event("failure", {{"fatal", true}}));
          trains = false;
          break;
        default: {
          StepMetrics metrics = a.step(++step, number, static_cast<float>(seconds() * 1e3));
          metrics.data_wait_ms = static_cast<float>(seconds() * 300);
          metrics.checkpoint_stall_ms = static_cast<float>(seconds() * 300);
          metrics.replication_stall_ms = static_cast<float>(seconds() * 300);
          whole.add_step(metrics);
          piecewise.add_step(metrics);
        }
      }
      end = a.clock;
      piecewise.settle();
    }
    whole.settle();
    EXPECT_NEAR(static_cast<double>(whole.total_micros()), (end - begin) * 1e6, 2);
    for (int i = 0; i < kNumTimeParts; ++i) {
      const auto part = static_cast<TimePart>(i);
      EXPECT_GE(whole.micros(part), 0) << time_part_name(part);
      EXPECT_EQ(whole.micros(part), piecewise.micros(part)) << time_part_name(part);
    }
  }
}

}  // namespace
}  // namespace skein
