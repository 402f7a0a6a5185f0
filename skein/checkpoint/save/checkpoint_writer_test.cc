#include "skein/checkpoint/save/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <future>
#include <thread>

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

TEST(CheckpointWriter, SavesWhatIsReadBack) {
  for (const bool async : {false, true}) {
    const TempFolder folder;
    SmallState state;
    CheckpointWriter writer(folder.path() / "checkpoints", {.async = async}, state.specs());
    const Result<SavedCheckpoint> saved = state.save(writer, 12);
    ASSERT_TRUE(saved.ok()) << saved.error().what();
    const fs::path path = folder.path() / "checkpoints/step-00000012";
    EXPECT_EQ(Result(saved).value().path, path);
    EXPECT_THAT(names_in(path), ElementsAre("manifest.json", "optimizer-00000-00000.safetensors",
                                            "weights-00000-00000.safetensors"));
    state.expect_saved(path, 12);
    const Result<VerifyReport> verified = verify_checkpoint(path);
    ASSERT_TRUE(verified.ok()) << verified.error().what();
    EXPECT_EQ(Result(verified).value().num_shards, 4);
    EXPECT_EQ(Result(verified).value().num_bytes, Result(saved).value().num_bytes);
    EXPECT_FALSE(writer.poll().has_value());
  }
}

TEST(CheckpointWriter, SplitsFilesBySize) {
  const TempFolder folder;
  SmallState state;
  CheckpointWriter writer(folder.path(), {.max_file_bytes = 100, .rank = 3}, state.specs());
  ASSERT_TRUE(state.save(writer, 1).ok());
  EXPECT_THAT(names_in(folder / "step-00000001"),
              ElementsAre("manifest.json", "optimizer-00003-00000.safetensors",
                          "optimizer-00003-00001.safetensors", "weights-00003-00000.safetensors",
                          "weights-00003-00001.safetensors"));
  state.expect_saved(folder / "step-00000001", 1);
}

TEST(CheckpointWriter, CopiesStridedViewsInPieces) {
  const TempFolder folder;
  constexpr int64_t kRows = 3000, kCols = 1000, kStride = 1003;  // more than one segment
  std::vector<float> data(kRows * kStride);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  View view = View::contiguous(data.data(), DType::kF32, {kRows, kCols});
  view.row_stride = kStride;
  CheckpointWriter writer(folder.path(), {}, {TensorSpec::whole("w", DType::kF32, {kRows, kCols})});
  writer.begin({.step = 1}, std::span(&view, 1));
  data.assign(data.size(), -1);  // training continues
  writer.wait();
  std::vector<float> found(kRows * kCols);
  CheckpointReader(folder / "step-00000001")
      .read("w", Box::whole({kRows, kCols}), DType::kF32, std::as_writable_bytes(std::span(found)));
  int64_t wrong = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t col = 0; col < kCols; ++col) {
      wrong += found[row * kCols + col] != static_cast<float>(row * kStride + col);
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(CheckpointWriter, CopiesARangeOfAStridedView) {
  const TempFolder folder;
  constexpr int64_t kRows = 8, kCols = 5, kStride = 9;
  std::vector<float> data(kRows * kStride);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  View view = View::contiguous(data.data(), DType::kF32, {kRows, kCols});
  view.row_stride = kStride;
  TensorSpec spec = TensorSpec::whole("w", DType::kF32, {kRows, kCols});
  spec.range = FlatRange{13, 21};
  spec.local_begin = 13;
  const CheckpointLayout layout = plan_checkpoint({spec}, 1 << 20, 0);
  Snapshot snapshot(layout.snapshot_bytes);
  const CopyFunction copy = [](void* to, const void* from, size_t bytes) {
    std::memcpy(to, from, bytes);
  };
  SnapshotCopy work;
  work.start(layout, std::span(&view, 1), snapshot.bytes(), copy);
  work.help();
  const auto* found = reinterpret_cast<const float*>(snapshot.bytes().data());
  for (int64_t i = 0; i < 21; ++i) {
    EXPECT_EQ(found[i], static_cast<float>((13 + i) / kCols * kStride + (13 + i) % kCols)) << i;
  }
  const View vector = View::contiguous(data.data(), DType::kF32, {33});  // one element too short
  EXPECT_THAT(error_of([&] { work.start(layout, std::span(&vector, 1), snapshot.bytes(), copy); }),
              HasSubstr("a vector of at least 34 elements"));
}

TEST(CheckpointWriter, SnapshotIsWhatWasAnnounced) {
  const TempFolder folder;
  SmallState state(1000);
  CheckpointWriter writer(folder.path(), {}, state.specs());
  EXPECT_EQ(writer.snapshot_bytes(), CheckpointWriter::snapshot_bytes(state.specs()));
  const int64_t payload = 2 * 6000 * 5 * 4 + 7 * 2 + 4;
  EXPECT_GE(writer.snapshot_bytes(), payload);
  EXPECT_LT(writer.snapshot_bytes(), payload + 4 * 64 + 4096);
}

TEST(CheckpointWriter, RefusesWhatItCannotSave) {
  const TempFolder folder;
  SmallState state;
  CheckpointWriter writer(folder.path(), {}, state.specs());
  std::vector<View> views = state.views();
  EXPECT_THROW(writer.begin({}, std::span(views).first(2)), Error);
  views[0].dtype = DType::kBF16;
  EXPECT_THAT(error_of([&] { writer.begin({}, views); }), HasSubstr("\"embed.weight\""));
  const auto construct = [&](std::vector<TensorSpec> specs) {
    return error_of([&] { CheckpointWriter(folder.path(), {}, std::move(specs)); });
  };
  const TensorSpec spec = TensorSpec::whole("a", DType::kF32, {4});
  EXPECT_THAT(construct({spec, spec}), HasSubstr("two tensors are named \"a\""));
  EXPECT_THAT(construct({TensorSpec::whole("a", DType::kF32, {4}, "../x")}), HasSubstr("group"));
  EXPECT_THAT(construct({{"a", DType::kF32, {4}, {{2}, {3}}}}), HasSubstr("not a box inside"));
}

TEST(CheckpointWriter, CountsTheRestOfARunningSaveAsStall) {
  const TempFolder folder;
  SmallState state;
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  const auto hook = [&](std::string_view operation, const fs::path&) {
    if (operation == "sync_folder") open.wait();  // the first save goes on when the gate opens
  };
  CheckpointWriter writer(folder.path(), {.file_hook = hook}, state.specs());
  state.set_step(1);
  writer.begin(state.state(), state.views());  // returns before the gate opens
  EXPECT_FALSE(writer.poll());
  state.set_step(2);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    gate.set_value();
  });
  EXPECT_GT(writer.begin(state.state(), state.views()), 0.1);  // the gate was closed for longer
  opener.join();
  writer.wait();
  EXPECT_EQ(writer.poll()->value().step, 1);
  EXPECT_EQ(writer.poll()->value().step, 2);
  EXPECT_FALSE(writer.poll());
  state.expect_saved(folder / "step-00000001", 1);
  state.expect_saved(folder / "step-00000002", 2);
}

TEST(CheckpointWriter, ACopyThatFailsLeavesItUsable) {
  const TempFolder folder;
  SmallState state;
  bool broken = true;
  const auto copy = [&](void* target, const void* source, size_t bytes) {
    if (broken) fail(ErrorCode::kIo, "device lost");
    std::memcpy(target, source, bytes);
  };
  CheckpointWriter writer(folder.path(), {.copy = copy}, state.specs());
  EXPECT_THROW(writer.begin(state.state(), state.views()), Error);
  broken = false;
  EXPECT_TRUE(state.save(writer, 5).ok());
  state.expect_saved(folder / "step-00000005", 5);
}

TEST(CheckpointWriter, ReportsThatMemoryRanOut) {
  const TempFolder folder;
  SmallState state;
  CheckpointWriter writer(folder.path(), {.before_commit = [] { throw std::bad_alloc(); }},
                          state.specs());
  const Result<SavedCheckpoint> saved = state.save(writer, 1);
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().code(), ErrorCode::kInternal);  // no advice on disks
  EXPECT_THAT(saved.error().what(), HasSubstr("was not saved, earlier ones are untouched: out of "
                                              "memory"));
}

TEST(CheckpointWriter, SavesAStepAgain) {
  const TempFolder folder;
  SmallState state;
  CheckpointWriter writer(folder.path(), {}, state.specs());
  ASSERT_TRUE(state.save(writer, 7).ok());
  std::ofstream(folder / "step-00000007/weights-00000-00000.safetensors") << "damaged";
  EXPECT_FALSE(verify_checkpoint(folder / "step-00000007").ok());
  ASSERT_TRUE(state.save(writer, 7).ok());
  state.expect_saved(folder / "step-00000007", 7);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("step-00000007"));
}

TEST(CheckpointWriter, CleansWhatADeadProcessLeft) {
  const TempFolder folder;
  SmallState state;
  for (const char* name : {"step-00000001.partial", "step-00000002.deleting", "step-00000003",
                           "step-00000003.replaced", "step-00000004.replaced", "notes.partial"}) {
    fs::create_directories(folder / name / "sub");
    std::ofstream(folder / name / "file") << name;
  }
  CheckpointWriter writer(folder.path(), {}, state.specs());
  EXPECT_THAT(names_in(folder.path()),
              ElementsAre("notes.partial", "step-00000003", "step-00000004"));
  EXPECT_EQ(read_file(folder / "step-00000004/file"), "step-00000004.replaced");
}

TEST(Retention, KeepsTheNewestAndThePermanent) {
  const TempFolder folder;
  SmallState state;
  CheckpointWriter writer(folder.path(), {.retention = {.keep = 2, .permanent_every_steps = 30}},
                          state.specs());
  for (int64_t step = 10; step <= 70; step += 10) ASSERT_TRUE(state.save(writer, step).ok());
  EXPECT_THAT(steps_in(folder.path()), ElementsAre(70, 60, 30));
  // When a run goes on from an older step, later steps are obsolete and do not count.
  EXPECT_THAT(Result(state.save(writer, 40)).value().removed_steps, ElementsAre());
  EXPECT_THAT(Result(state.save(writer, 50)).value().removed_steps, ElementsAre());
  EXPECT_THAT(steps_in(folder.path()), ElementsAre(70, 60, 50, 40, 30));
  EXPECT_THAT(Result(state.save(writer, 55)).value().removed_steps, ElementsAre(40));
}

TEST(Retention, ZeroKeepsAll) {
  std::vector<CheckpointInfo> all = {{3, "c"}, {2, "b"}, {1, "a"}};
  EXPECT_TRUE(select_expired(all, 3, {.keep = 0}).empty());
  EXPECT_EQ(select_expired(all, 3, {.keep = 1}).size(), 2u);
  EXPECT_TRUE(select_expired(all, 1, {.keep = 1}).empty());
  EXPECT_EQ(select_expired(all, 2, {.keep = 1}).size(), 1u);
  EXPECT_EQ(select_expired(all, 3, {.keep = 1}, /*best_step=*/1).size(), 1u);
}

TEST(CheckpointFolder, KnowsItsNames) {
  EXPECT_EQ(checkpoint_name(1000), "step-00001000");
  EXPECT_EQ(parse_checkpoint_name("step-00001000"), 1000);
  EXPECT_EQ(parse_checkpoint_name(checkpoint_name(123456789)), 123456789);
  for (const char* name : {"step-1000", "step-00001000.partial", "step-", "step--0000001", "x",
                           "step-000001000", "step-99999999999999999999", "step-0000100 "}) {
    EXPECT_EQ(parse_checkpoint_name(name), std::nullopt) << name;
  }
  EXPECT_TRUE(list_checkpoints("/does/not/exist").empty());
}

}  // namespace
}  // namespace skein
