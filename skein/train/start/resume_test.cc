#include "skein/train/start/resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/checkpoint/checkpoint_test_state.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::names_in;
using test::SmallState;
using test::steps_in;
using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;

// A run folder and the sequence of calls with which the trainer starts in it.
class RunFolder {
 public:
  explicit RunFolder(const fs::path& folder) : folder_(folder) {}

  fs::path dir() const { return folder_ / "checkpoints"; }
  fs::path checkpoint(int64_t step) const { return dir() / checkpoint_name(step); }

  // Starts, saves each of `steps`, and ends.
  StartingPoint start(const std::string& resume, const std::vector<int64_t>& steps,
                      int64_t keep = 0) const {
    const RunLock lock = lock_checkpoints(dir().string(), folder_.string());
    const StartingPoint start = choose_start(lock, dir(), resume, report_, quick());
    SmallState state;
    state.set_timeline(start.timeline);
    CheckpointWriter writer(dir(), {.retention = {.keep = keep}, .async = false}, state.specs());
    for (const int64_t step : steps) EXPECT_TRUE(state.save(writer, step).ok()) << step;
    return start;
  }
  StartingPoint before(int64_t step, const Timeline& current,
                       const std::string& origin = "") const {
    const RunLock lock = lock_checkpoints(dir().string(), folder_.string());
    return choose_before(lock, dir(), step, current, origin, report_, quick());
  }
  std::string refused(const std::string& resume, ErrorCode code) const {
    try {
      start(resume, {});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "";
  }

 private:
  static SearchOptions quick() {
    SearchOptions options;
    options.pauses_s = {0};
    return options;
  }

  fs::path folder_;
  ReportDamaged report_ = [](const CheckpointInfo&, const Error&) {};
};

TEST(Resume, AutoGoesOnAndNeverDoesNot) {
  const TempFolder folder;
  const RunFolder run(folder / "a");
  const StartingPoint first = run.start("auto", {10, 20});
  EXPECT_EQ(first.checkpoint, "");
  EXPECT_EQ(first.timeline.number, 1);
  EXPECT_NE(first.timeline.run_id, "");
  const StartingPoint second = run.start("auto", {});
  EXPECT_EQ(second.checkpoint, run.checkpoint(20));
  EXPECT_EQ(second.timeline, first.timeline);
  EXPECT_THAT(run.refused("never", ErrorCode::kUsage), HasSubstr("holds checkpoints"));
  EXPECT_EQ(RunFolder(folder / "b").start("never", {}).checkpoint, "");
}

TEST(Resume, ADivergedRunGoesBackOnANewTimeline) {
  const TempFolder folder;
  const RunFolder run(folder / "a");
  const Timeline first = run.start("auto", {10, 20, 30}).timeline;
  const StartingPoint back = run.before(29, first);
  EXPECT_EQ(back.checkpoint, run.checkpoint(20));
  EXPECT_EQ(back.timeline.number, 2);
  EXPECT_NE(back.timeline.run_id, first.run_id);
  EXPECT_EQ(back.timeline.parent, (Timeline::Parent{first.run_id, 20, "step-00000020"}));
  // It has saved nothing since: what the other timeline saved after step 20 is none of its own.
  const StartingPoint again = run.before(99, back.timeline);
  EXPECT_EQ(again.checkpoint, run.checkpoint(20));
  EXPECT_EQ(again.timeline.number, 3);
  EXPECT_EQ(run.before(9, first).checkpoint, "");
  EXPECT_EQ(run.before(9, first).timeline.parent, std::nullopt);
}

TEST(Resume, ADivergedRunGoesBackToWhereItBegan) {
  const TempFolder folder;
  const RunFolder source(folder / "source"), run(folder / "run");
  source.start("auto", {10});
  const std::string origin = fs::weakly_canonical(source.checkpoint(10)).string();
  const Timeline current = run.start(origin, {}).timeline;
  const StartingPoint back = run.before(12, current, origin);
  EXPECT_EQ(back.checkpoint, origin);
  EXPECT_EQ(back.timeline.parent->path, origin);
  EXPECT_THAT(test::error_of([&] { run.before(9, current, origin); }),
              HasSubstr("at or before step 9"));
}

// Repeating the same command continues the run instead of starting it again.
TEST(Resume, APathIsTheStartOfAnEmptyRun) {
  const TempFolder folder;
  const RunFolder source(folder / "source"), run(folder / "run");
  const Timeline parent = source.start("auto", {10, 20}).timeline;
  const std::string path = fs::weakly_canonical(source.checkpoint(10)).string();

  const StartingPoint first = run.start(path, {});  // dies before it saves
  EXPECT_EQ(first.checkpoint, path);
  EXPECT_EQ(first.timeline.number, 1);
  const Timeline::Parent expected = {parent.run_id, 10, path};
  EXPECT_EQ(first.timeline.parent, expected);
  const StartingPoint second = run.start(path, {12, 14});
  EXPECT_EQ(second.checkpoint, path);
  EXPECT_NE(second.timeline.run_id, first.timeline.run_id);
  const StartingPoint third = run.start(path, {16});
  EXPECT_EQ(third.checkpoint, run.checkpoint(14));
  EXPECT_EQ(third.timeline, second.timeline);
  EXPECT_THAT(third.why, HasSubstr("began from run.resume"));
  fs::rename(folder / "source", folder / "moved");  // then found by its run id
  EXPECT_EQ(run.start((folder / "moved/checkpoints/step-00000010/").string(), {}).checkpoint,
            run.checkpoint(16));
  fs::remove_all(folder / "moved");  // the parent is not needed any more
  EXPECT_EQ(run.start(path, {18}).checkpoint, run.checkpoint(16));
  EXPECT_EQ(run.start("auto", {}).checkpoint, run.checkpoint(18));
}

TEST(Resume, ARunIsItsNewestCheckpoint) {
  const TempFolder folder;
  const RunFolder source(folder / "source"), run(folder / "run");
  source.start("auto", {10, 20});
  const std::string path = (folder / "source").string();
  EXPECT_EQ(run.start(path, {}).checkpoint, source.checkpoint(20));
  EXPECT_EQ(run.start(path, {22}).timeline.parent->path,
            fs::weakly_canonical(source.checkpoint(20)));
  source.start("auto", {30});
  EXPECT_EQ(run.start(path, {24}).checkpoint, run.checkpoint(22));
  EXPECT_EQ(run.start(path + "/checkpoints/", {}).checkpoint, run.checkpoint(24));
  // Naming the run's own folder means auto.
  const RunFolder own(folder / "run");
  EXPECT_EQ(own.start((folder / "run").string(), {}).checkpoint, run.checkpoint(24));
}

TEST(Resume, GoingBackLeavesWhatCameAfter) {
  const TempFolder folder;
  const RunFolder run(folder / "run");
  const Timeline old = run.start("auto", {5, 10, 15, 20}).timeline;
  const std::string back = run.checkpoint(10).string();
  const StartingPoint start = run.start(back, {12}, 3);
  EXPECT_EQ(start.checkpoint, back);
  EXPECT_EQ(start.timeline.number, 2);
  const Timeline::Parent parent = {old.run_id, 10, "step-00000010"};
  EXPECT_EQ(start.timeline.parent, parent);
  EXPECT_THAT(start.why, HasSubstr("not taken up again"));
  // Retention with keep = 3 touched neither the parent nor the others.
  EXPECT_THAT(steps_in(run.dir()), ElementsAre(20, 15, 12, 10, 5));
  EXPECT_EQ(run.start("auto", {}).checkpoint, run.checkpoint(12));  // and not 20
  EXPECT_THAT(run.start("auto", {}).why, HasSubstr("(20, 15)"));
  EXPECT_EQ(run.start(back, {14, 16, 18}, 3).checkpoint, run.checkpoint(12));
  EXPECT_THAT(steps_in(run.dir()), ElementsAre(20, 18, 16, 15, 14, 10, 5));
  // Saves over step 20 of the abandoned timeline.
  EXPECT_EQ(run.start("auto", {20}, 3).checkpoint, run.checkpoint(18));
  EXPECT_EQ(read_timeline(run.checkpoint(20)), start.timeline);
  // A moved run resumes as before.
  fs::rename(folder / "run", folder / "moved");
  const RunFolder moved(folder / "moved");
  EXPECT_EQ(moved.start(moved.checkpoint(10).string(), {}).checkpoint, moved.checkpoint(20));
}

// A run that began from another run and was rewound since still accepts its first command.
TEST(Resume, ThePathThatItBeganFromStaysItsOwnAfterGoingBack) {
  const TempFolder folder;
  const RunFolder source(folder / "source"), run(folder / "run");
  source.start("auto", {5});
  const std::string path = source.checkpoint(5).string();
  run.start(path, {10, 20});
  run.start(run.checkpoint(10).string(), {12});
  const StartingPoint start = run.start(path, {14});
  EXPECT_EQ(start.checkpoint, run.checkpoint(12));
  EXPECT_EQ(start.timeline.number, 2);
}

TEST(Resume, BackFromWhereItWentBackTo) {
  const TempFolder folder;
  const RunFolder run(folder / "run");
  run.start("auto", {10, 20});
  run.start(run.checkpoint(10).string(), {12});
  const StartingPoint start = run.start(run.checkpoint(20).string(), {22});
  EXPECT_EQ(start.checkpoint, run.checkpoint(20));
  EXPECT_EQ(start.timeline.number, 3);
  EXPECT_EQ(run.start("auto", {}).checkpoint, run.checkpoint(22));
}

TEST(Resume, OldCheckpointsWithoutTimelinesGoOn) {
  const TempFolder folder;
  const RunFolder run(folder / "run");
  {
    SmallState state;
    CheckpointWriter writer(run.dir(), {.async = false}, state.specs());
    for (const int64_t step : {10, 20}) ASSERT_TRUE(state.save(writer, step).ok());
  }
  const StartingPoint start = run.start("auto", {30}, 2);
  EXPECT_EQ(start.checkpoint, run.checkpoint(20));
  EXPECT_EQ(start.timeline.number, 0);
  EXPECT_NE(start.timeline.run_id, "");
  EXPECT_THAT(steps_in(run.dir()), ElementsAre(30, 20));  // both belong to this run
  EXPECT_EQ(run.start("auto", {}).timeline, start.timeline);
  const std::string back = run.checkpoint(20).string();
  EXPECT_EQ(run.start(back, {25}).checkpoint, back);
  EXPECT_EQ(run.start(back, {}).checkpoint, run.checkpoint(25));
  EXPECT_EQ(run.start("auto", {}).checkpoint, run.checkpoint(25));
}

TEST(Resume, RefusesAPathThatTheRunDidNotBeginFrom) {
  const TempFolder folder;
  const RunFolder source(folder / "source"), run(folder / "run");
  source.start("auto", {10, 20});
  run.start("auto", {5});
  const std::string error = run.refused(source.checkpoint(20).string(), ErrorCode::kUsage);
  EXPECT_THAT(error, HasSubstr("did not begin from it (the newest of step 5)"));
  EXPECT_THAT(error, HasSubstr("run.resume = \"auto\""));
  run.refused((folder / "source").string(), ErrorCode::kUsage);
}

TEST(Resume, RefusesWhatIsNoCheckpoint) {
  const TempFolder folder;
  const RunFolder run(folder / "run");
  EXPECT_THAT(run.refused("/nowhere", ErrorCode::kUsage),
              HasSubstr("\"/nowhere\", which is not there"));
  EXPECT_THAT(run.refused((folder / "step-00000010").string(), ErrorCode::kUsage),
              HasSubstr("which is not there"));
  fs::create_directories(folder / "kept/step-00000040");
  std::ofstream(folder / "kept/step-00000040/manifest.json") << "{}";
  EXPECT_THAT(run.refused((folder / "kept/step-00000010").string(), ErrorCode::kUsage),
              HasSubstr("kept holds those of steps 40: checkpoint.keep says how many stay"));
  std::ofstream(folder / "file") << "x";
  EXPECT_THAT(run.refused((folder / "file").string(), ErrorCode::kUsage),
              HasSubstr("not a folder"));
  fs::create_directories(folder / "hf");
  EXPECT_THAT(run.refused((folder / "hf").string(), ErrorCode::kUsage),
              HasSubstr("holds no checkpoint"));
  std::ofstream(folder / "hf/config.json") << "{}";
  EXPECT_THAT(run.refused((folder / "hf").string(), ErrorCode::kUsage),
              HasSubstr("model.init_from"));
  EXPECT_THAT(run.refused((folder / "run").string(), ErrorCode::kUsage),
              HasSubstr("holds no checkpoint"));
  fs::create_directories(folder / "step-00000011");
  EXPECT_THAT(run.refused((folder / "step-00000011").string(), ErrorCode::kNotFound),
              HasSubstr("manifest.json"));
}

TEST(Resume, NeverBeginsAnewBesideDamage) {
  const TempFolder folder;
  const RunFolder run(folder / "run");
  run.start("auto", {10, 20});
  run.start(run.checkpoint(10).string(), {12});
  for (const int64_t step : {10, 12}) {
    std::ofstream(run.checkpoint(step) / "weights-00000-00000.safetensors") << "x";
  }
  EXPECT_THAT(run.refused("auto", ErrorCode::kCorrupt), HasSubstr("none of the 2 checkpoints"));
  EXPECT_THAT(run.refused("auto", ErrorCode::kCorrupt), HasSubstr("(steps 20)"));
  EXPECT_EQ(run.start(run.checkpoint(20).string(), {}).checkpoint, run.checkpoint(20));
}

// The clean-up precedes the search, which then finds the checkpoint under its final name.
TEST(Resume, ClearsWhatACrashLeftFirst) {
  const TempFolder folder;
  const RunFolder run(folder / "run");
  run.start("auto", {10});
  fs::rename(run.checkpoint(10), run.dir() / "step-00000010.replaced");
  fs::create_directories(run.dir() / "step-00000020.partial");
  EXPECT_EQ(run.start("auto", {}).checkpoint, run.checkpoint(10));
  EXPECT_THAT(names_in(run.dir()), ElementsAre(".lock", "step-00000010"));
  fs::rename(run.checkpoint(10), run.dir() / "step-00000010.replaced");
  EXPECT_THAT(run.refused("never", ErrorCode::kUsage), HasSubstr("holds checkpoints"));
}

// Retention of another run must not remove the checkpoint that this run would begin from again.
TEST(Resume, TheParentStaysUntilThereIsAnOwnCheckpoint) {
  const TempFolder folder;
  const RunFolder source(folder / "source"), run(folder / "run");
  source.start("auto", {10});
  {
    const StartingPoint start = run.start(source.checkpoint(10).string(), {});
    source.start("auto", {20, 30}, 1);
    EXPECT_THAT(steps_in(source.dir()), ElementsAre(30, 10));
  }
  source.start("auto", {40}, 1);
  EXPECT_THAT(steps_in(source.dir()), ElementsAre(40));
}

TEST(Resume, OneRunAtATimeInAFolderOfCheckpoints) {
  const TempFolder folder;
  const std::string dir = (folder / "shared").string();
  const RunLock lock = lock_checkpoints(dir, "runs/a");
  const std::string error = test::error_of([&] { lock_checkpoints(dir, "runs/b"); });
  EXPECT_THAT(error, HasSubstr("checkpoint folder " + dir));
  EXPECT_THAT(error, HasSubstr("runs/a: stop that process, or choose another checkpoint.dir"));
}

}  // namespace
}  // namespace skein
