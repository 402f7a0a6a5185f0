// Which checkpoint is found: across timelines, beside damaged and unreadable checkpoints, and
// beside a run that removes checkpoints meanwhile.
#include "skein/checkpoint/find/newest_good.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/checkpoint/checkpoint_test_state.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using test::names_in;
using test::SmallState;
using test::steps_in;
using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;

const Timeline kFirst = {"first", 1, std::nullopt};
const Timeline kSecond = {"second", 2, Timeline::Parent{"first", 10, "step-00000010"}};

void save(const fs::path& dir, const Timeline& timeline, const std::vector<int64_t>& steps,
          int64_t keep = 0) {
  SmallState state;
  state.set_timeline(timeline);
  CheckpointWriter writer(dir, {.retention = {.keep = keep}, .async = false}, state.specs());
  for (const int64_t step : steps) ASSERT_TRUE(state.save(writer, step).ok());
}

std::vector<int64_t> steps_of(const std::vector<CheckpointInfo>& checkpoints) {
  std::vector<int64_t> steps;
  for (const CheckpointInfo& checkpoint : checkpoints) steps.push_back(checkpoint.step);
  return steps;
}

void cut(const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); }

TEST(Lineage, LeavesWhatWasGoneBackFrom) {
  const TempFolder folder;
  save(folder.path(), kFirst, {5, 10, 15, 20});
  EXPECT_THAT(steps_of(lineage_of(folder.path()).checkpoints), ElementsAre(20, 15, 10, 5));
  save(folder.path(), kSecond, {12});
  Lineage lineage = lineage_of(folder.path());
  EXPECT_EQ(lineage.timeline, kSecond);
  EXPECT_THAT(steps_of(lineage.checkpoints), ElementsAre(12, 10, 5));
  EXPECT_THAT(steps_of(lineage.left), ElementsAre(20, 15));
  // Going back to before the second timeline began leaves the second one as well.
  save(folder.path(), {"third", 3, Timeline::Parent{"first", 5, "step-00000005"}}, {7});
  lineage = lineage_of(folder.path());
  EXPECT_THAT(steps_of(lineage.checkpoints), ElementsAre(7, 5));
  EXPECT_THAT(steps_of(lineage.left), ElementsAre(20, 15, 12, 10));
  // Going on from a checkpoint that was left makes it part of the run's past again.
  save(folder.path(), {"fourth", 4, Timeline::Parent{"second", 12, "step-00000012"}}, {13});
  EXPECT_THAT(steps_of(lineage_of(folder.path()).checkpoints), ElementsAre(13, 12, 10, 5));
}

TEST(Lineage, AStepOfAnEarlierTimelineIsReplaced) {
  const TempFolder folder;
  save(folder.path(), kFirst, {10, 20});
  save(folder.path(), kSecond, {20});
  SmallState state;
  state.set_timeline(kSecond);
  state.expect_saved(folder / "step-00000020", 20);
  EXPECT_THAT(steps_of(lineage_of(folder.path()).checkpoints), ElementsAre(20, 10));
  EXPECT_THAT(names_in(folder.path()), ElementsAre("step-00000010", "step-00000020"));
}

TEST(Lineage, OldCheckpointsAreOneTimeline) {
  const TempFolder folder;
  save(folder.path(), {}, {10, 20});
  EXPECT_THAT(steps_of(lineage_of(folder.path()).checkpoints), ElementsAre(20, 10));
  save(folder.path(), {"named", 0, std::nullopt}, {30});
  EXPECT_EQ(lineage_of(folder.path()).timeline.run_id, "named");
  EXPECT_THAT(steps_of(lineage_of(folder.path()).checkpoints), ElementsAre(30, 20, 10));
  save(folder.path(), {"next", 1, Timeline::Parent{"", 10, "step-00000010"}}, {15});
  EXPECT_THAT(steps_of(lineage_of(folder.path()).checkpoints), ElementsAre(15, 10));
}

TEST(Lineage, ReadsAManifestHoweverItIsWritten) {
  const TempFolder folder;
  save(folder.path(), kSecond, {12});
  EXPECT_EQ(read_timeline(folder / "step-00000012"), kSecond);
  const fs::path path = folder / "step-00000012/manifest.json";
  const std::string text = read_file(path);
  std::ofstream(path) << text.substr(0, text.find("\"timeline\"") + 30);
  EXPECT_NE(error_of([&] { read_timeline(folder / "step-00000012"); }), "");
}

TEST(Lineage, TwoRunsInOneFolderAreNotMixed) {
  const TempFolder folder;
  save(folder.path(), kFirst, {10});
  save(folder.path(), {"stranger", 1, std::nullopt}, {99});
  EXPECT_THAT(error_of([&] { find_newest_good(folder.path(), {}); }),
              HasSubstr("step-00000010 are checkpoints of two runs in one folder"));
}

TEST(Search, DamageFallsBackWithinTheLineage) {
  const TempFolder folder;
  save(folder.path(), kFirst, {10, 20});
  save(folder.path(), kSecond, {12, 14});
  cut(folder / "step-00000014/weights-00000-00000.safetensors");
  std::vector<int64_t> damaged;
  const auto report = [&](const CheckpointInfo& info, const Error&) {
    damaged.push_back(info.step);
  };
  EXPECT_EQ(find_newest_good(folder.path(), report)->step, 12);
  cut(folder / "step-00000012/weights-00000-00000.safetensors");
  EXPECT_EQ(find_newest_good(folder.path(), report)->step, 10);  // and not 20
  EXPECT_THAT(damaged, ElementsAre(14, 14, 12));
}

TEST(Search, SeesACheckpointWhoseReplacementWasCutInTwo) {
  const TempFolder folder;
  save(folder.path(), kFirst, {10, 20});
  fs::rename(folder / "step-00000020", folder / "step-00000020.replaced");
  fs::copy(folder / "step-00000010", folder / "step-00000010.replaced");  // its original exists
  EXPECT_THAT(steps_in(folder.path()), ElementsAre(20, 10));
  const auto newest = find_newest_good(folder.path(), {});
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ(newest->path, folder / "step-00000020.replaced");
  EXPECT_EQ(list_checkpoints(folder.path())[1].path, folder / "step-00000010");
  EXPECT_EQ(find_checkpoint(folder / "step-00000020"), folder / "step-00000020.replaced");
  EXPECT_EQ(find_checkpoint(folder / "step-00000010"), folder / "step-00000010");
  // The step in its name is still compared.
  fs::rename(folder / "step-00000020.replaced", folder / "step-00000021.replaced");
  EXPECT_THAT(verify_checkpoint(folder / "step-00000021.replaced").error().what(),
              HasSubstr("says step 20"));
}

// A checkpoint that can be read only at attempt `good_at`.
SearchOptions unreadable_until(int good_at, const fs::path& which, int& tries) {
  SearchOptions options;
  options.pauses_s = {0, 0.001};
  options.verify = [good_at, which, &tries](const fs::path& path) -> Result<VerifyReport> {
    if (path == which && ++tries < good_at) {
      return Error(ErrorCode::kIo, "cannot read x: Stale file handle (116)");
    }
    return verify_checkpoint(path);
  };
  return options;
}

TEST(Search, WhatCannotBeReadIsTriedAgain) {
  const TempFolder folder;
  save(folder.path(), kFirst, {10, 20});
  int tries = 0;
  std::vector<int64_t> damaged;
  const auto report = [&](const CheckpointInfo& info, const Error&) {
    damaged.push_back(info.step);
  };
  EXPECT_EQ(
      find_newest_good(folder.path(), report, unreadable_until(3, folder / "step-00000020", tries))
          ->step,
      20);
  EXPECT_EQ(tries, 3);
  EXPECT_TRUE(damaged.empty());
}

TEST(Search, WhatStaysUnreadableStopsIt) {
  const TempFolder folder;
  save(folder.path(), kFirst, {10, 20});
  int tries = 0;
  const auto result = try_run([&] {
    return find_newest_good(folder.path(), {},
                            unreadable_until(99, folder / "step-00000020", tries));
  });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kIo);
  EXPECT_THAT(result.error().what(), HasSubstr("Stale file handle"));
  EXPECT_THAT(result.error().what(), HasSubstr("tried 3 times"));
  EXPECT_THAT(result.error().what(), HasSubstr("move it away to continue from an older one"));
}

// The same with real read errors of the operating system, for every file of a checkpoint.
TEST(Search, ARefusalToReadIsNoDamage) {
  SearchOptions options;
  options.pauses_s = {0};
  for (const char* name : {"manifest.json", "weights-00000-00000.safetensors"}) {
    SCOPED_TRACE(name);
    const TempFolder folder;
    save(folder.path(), kFirst, {10, 20});
    const fs::path file = folder / "step-00000020" / name;
    fs::remove(file);
    fs::create_symlink(name, file);  // ELOOP
    const auto result = try_run([&] { return find_newest_good(folder.path(), {}, options); });
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), ErrorCode::kIo) << result.error().what();
    EXPECT_THAT(result.error().what(), HasSubstr("Too many levels of symbolic links"));
    fs::remove(file);  // a missing file is damage
    EXPECT_EQ(find_newest_good(folder.path(), {}, options)->step, 10);
  }
}

TEST(Search, AFolderThatCannotBeLookedAtIsNotPassedOver) {
  const TempFolder folder;
  save(folder.path(), kFirst, {10});
  fs::create_symlink("step-00000020", folder / "step-00000020");
  EXPECT_THAT(error_of([&] { list_checkpoints(folder.path()); }), HasSubstr("step-00000020"));
}

TEST(Search, OneThatVanishesIsNotDamaged) {
  const TempFolder folder;
  save(folder.path(), kFirst, {10, 20});
  SearchOptions options;
  options.verify = [&](const fs::path& path) {
    fs::remove_all(folder / "step-00000020");  // as retention does
    return verify_checkpoint(path);
  };
  const auto report = [](const CheckpointInfo& info, const Error&) { ADD_FAILURE() << info.step; };
  EXPECT_EQ(find_newest_good(folder.path(), report, options)->step, 10);
}

TEST(Search, ANewerFormatIsNotPassedOver) {
  const TempFolder folder;
  save(folder.path(), kFirst, {10, 20});
  SearchOptions options;
  options.verify = [](const fs::path&) -> Result<VerifyReport> {
    return Error(ErrorCode::kUnsupported, "use a newer skein");
  };
  EXPECT_THAT(error_of([&] { find_newest_good(folder.path(), {}, options); }),
              HasSubstr("newer skein"));
}

TEST(Hold, WhatIsReadIsNotRemoved) {
  const TempFolder folder;
  save(folder.path(), kFirst, {10, 20});
  {
    const CheckpointReader reader(folder / "step-00000010");
    save(folder.path(), kFirst, {30}, 1);
    EXPECT_THAT(steps_in(folder.path()), ElementsAre(30, 10));
    EXPECT_FALSE(remove_checkpoint({10, folder / "step-00000010"}, FileOps()));
  }
  save(folder.path(), kFirst, {40}, 1);
  EXPECT_THAT(steps_in(folder.path()), ElementsAre(40));
}

// The name goes to another checkpoint, but a reader of the old one goes on reading that.
TEST(Hold, WhatIsReplacedIsReadToItsEnd) {
  const TempFolder folder;
  save(folder.path(), kFirst, {10, 20});
  SmallState state;
  {
    const CheckpointReader reader(folder / "step-00000020");
    std::ofstream(folder / "step-00000010/weights-00000-00000.safetensors") << "another";
    fs::rename(folder / "step-00000020", folder / "aside");
    fs::rename(folder / "step-00000010", folder / "step-00000020");
    std::vector<std::byte> found(6 * 5 * 4);
    reader.read("embed.weight", Box::whole({6, 5}), DType::kF32, found);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], SmallState::value(20, 0, i));
  }
  EXPECT_THAT(error_of([&] { CheckpointReader(folder / "nowhere"); }),
              HasSubstr("nowhere: No such file"));
}

TEST(Hold, AReplacedCheckpointThatIsReadIsCleanedUpLater) {
  const TempFolder folder;
  save(folder.path(), kFirst, {10, 20});
  {
    const CheckpointReader reader(folder / "step-00000020");
    save(folder.path(), kSecond, {20});
    EXPECT_EQ(names_in(folder.path()).size(), 3u);
  }
  save(folder.path(), kSecond, {22});
  EXPECT_THAT(names_in(folder.path()),
              ElementsAre("step-00000010", "step-00000020", "step-00000022"));
}

TEST(Retention, CountsItsOwnTimelineAlone) {
  const TempFolder folder;
  save(folder.path(), kFirst, {5, 10, 15, 20});
  save(folder.path(), kSecond, {12}, 3);
  EXPECT_THAT(steps_in(folder.path()), ElementsAre(20, 15, 12, 10, 5));
  save(folder.path(), kSecond, {13, 14, 16, 17}, 3);
  EXPECT_THAT(steps_in(folder.path()), ElementsAre(20, 17, 16, 15, 14, 10, 5));
}

}  // namespace
}  // namespace skein
