// Several ranks save one checkpoint; any layout loads it.
#include "skein/checkpoint/save/shared_save.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "skein/checkpoint/save/join_parts.h"
#include "skein/checkpoint/save/merge_parts.h"
#include "tests/checkpoint/checkpoint_ranks_state.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using test::names_in;
using test::Ranks;
using test::RanksState;
using test::steps_in;
using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(SharedSave, MakesOneCheckpointWithoutDuplicates) {
  const TempFolder folder;
  const RanksState state(Mesh::standard(1, 2, 1, 2));
  Ranks ranks(state, folder.path());
  const auto results = ranks.save(40);
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.error().what();
  const fs::path path = folder / "step-00000040";
  EXPECT_THAT(names_in(folder.path()), ElementsAre("step-00000040"));
  EXPECT_THAT(names_in(path),
              ElementsAre("manifest.json", "optimizer-00000-00000.safetensors",
                          "optimizer-00001-00000.safetensors", "optimizer-00002-00000.safetensors",
                          "optimizer-00003-00000.safetensors", "weights-00000-00000.safetensors",
                          "weights-00001-00000.safetensors", "weights-00002-00000.safetensors",
                          "weights-00003-00000.safetensors"));
  state.expect_saved(path, 40);
  const CheckpointReader reader(path);
  int64_t stored_bytes = 0, tensor_bytes = 0;
  for (const ManifestFile& file : reader.manifest().files) {
    stored_bytes += file.file_bytes - file.header_bytes;
  }
  for (const auto& tensor : state.tensors()) {
    tensor_bytes += tensor.type.shape.num_elements() * size_of(tensor.type.dtype);
  }
  EXPECT_EQ(stored_bytes, tensor_bytes);
  int64_t of_others = 0;
  for (int rank = 1; rank < 4; ++rank) of_others += Result(results[rank]).value().num_bytes;
  EXPECT_LT(of_others, Result(results[0]).value().num_bytes);
  EXPECT_EQ(Result(results[0]).value().num_bytes, reader.total_bytes());
}

TEST(SharedSave, AnyLayoutLoadsAnyOther) {
  const std::vector<Mesh> meshes = {Mesh::standard(1, 1, 1, 1), Mesh::standard(1, 3, 1, 1),
                                    Mesh::standard(1, 1, 1, 4), Mesh::standard(1, 2, 2, 2),
                                    Mesh::standard(1, 4, 1, 2)};
  for (const bool indexed : {false, true}) {
    for (const Mesh& saved : meshes) {
      const TempFolder folder(TempFolder::Where::kMemory);
      const RanksState state(saved, indexed);
      Ranks(state, folder.path()).expect_save(1);
      const fs::path path = folder / "step-00000001";
      EXPECT_EQ(fs::exists(path / "index.bin"), indexed && saved.num_ranks() > 1);
      state.expect_saved(path, 1);
      for (const Mesh& loaded : meshes) {
        SCOPED_TRACE(saved.to_string() + " into " + loaded.to_string());
        RanksState(loaded).expect_loads(path, 1);
      }
    }
  }
}

TEST(SharedSave, FromNineRanksOnTheShardsAreInAnIndex) {
  for (const int num_ranks : {8, 9}) {
    const TempFolder folder(TempFolder::Where::kMemory);
    const RanksState state(Mesh::standard(1, num_ranks, 1, 1));
    Ranks ranks(state, folder.path());
    const auto results = ranks.save(1);
    const fs::path path = folder / "step-00000001";
    state.expect_saved(path, 1);
    const CheckpointReader reader(path);
    EXPECT_EQ(fs::exists(path / "index.bin"), num_ranks == 9);
    EXPECT_EQ(Result(results[0]).value().num_bytes, reader.total_bytes());
    // In both cases manifest.json lists the tensors for people.
    const Json manifest = parse_json(read_file(path / "manifest.json"), "manifest.json");
    EXPECT_EQ(manifest.at("format_version"), num_ranks == 9 ? 2 : 1);
    EXPECT_EQ(manifest.at("tensors").size(), state.tensors().size());
    EXPECT_EQ(manifest.at("tensors")[0].contains("shards"), num_ranks == 8);
    EXPECT_TRUE(manifest.at("tensors")[0].contains("shape"));
  }
}

// EIO, ESTALE, EACCES: a folder that cannot be looked at has not vanished.
TEST(SharedSave, AFolderThatCannotBeLookedAtForAMomentIsWaitedFor) {
  const TempFolder folder;
  const FileOps ops;
  const auto save_of = [&](double deadline_s) {
    return SharedSave({.dir = folder.path(),
                       .step = 40,
                       .save = "start-1",
                       .rank = 1,
                       .num_ranks = 2,
                       .deadline_s = deadline_s},
                      ops);
  };
  SharedSave rank_1 = save_of(60), impatient = save_of(0.1);
  rank_1.open();
  impatient.open();
  const fs::path partial = rank_1.partial(), aside = folder / "aside";
  fs::rename(partial, aside);
  fs::create_symlink(partial.filename(), partial);
  const auto late = impatient.wait_for_commit();
  ASSERT_TRUE(late);
  EXPECT_THAT(late->what(), HasSubstr("Too many levels of symbolic links"));
  EXPECT_TRUE(fs::is_symlink(partial));
  std::thread rank_0([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    fs::remove(partial);
    fs::rename(aside, rank_1.path());
  });
  const auto error = rank_1.wait_for_commit();
  rank_0.join();
  EXPECT_FALSE(error) << error->what();
}

// Parts that were written into a folder that is gone would be waited for until the deadline.
TEST(SharedSave, AFolderThatWasTakenAwayEndsTheSaveForAllRanks) {
  const TempFolder folder;
  const FileOps ops;
  fs::create_directory(folder / "checkpoints");
  std::vector<SharedSave> saves;
  for (int rank = 0; rank < 2; ++rank) {
    saves.emplace_back(SharedSaveOptions{.dir = folder / "checkpoints",
                                         .step = 40,
                                         .save = "start-1",
                                         .rank = rank,
                                         .num_ranks = 2},
                       ops);
    saves.back().open();
  }
  fs::rename(folder / "checkpoints", folder / "aside");
  EXPECT_THAT(error_of([&] { saves[0].collect(); }), HasSubstr("partial has vanished"));
  const auto error = saves[1].wait_for_commit();
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("partial has vanished"));
}

// A tensor that every rank lists and none stores must be reported as missing.
TEST(SharedSave, ATensorThatNobodyStoresFailsTheSave) {
  for (const bool indexed : {false, true}) {
    std::vector<SavePart> parts;
    for (int rank = 0; rank < 2; ++rank) {
      const TempFolder folder;
      const RanksState state(Mesh::standard(1, 2, 1, 1));
      Manifest own{.state = state.state(1, rank)};
      own.tensors = {{"w", DType::kF32, {4}, {}}, {"gone", DType::kF32, {4}, {}}};
      const std::string file = fmt::format("weights-{:05d}-00000.safetensors", rank);
      own.files = {{file, 108, 100, std::string(32, 'a')}};
      own.tensors[0].shards = {{file, {{2 * rank}, {2}}, 100, 108, std::string(32, 'b')}};
      parts.emplace_back(own);
    }
    const TempFolder folder;
    EXPECT_THAT(error_of([&] {
                  indexed ? join_parts(std::move(parts), folder / "index.bin", FileOps())
                          : join_parts(std::move(parts));
                }),
                HasSubstr(": its slices cover 0 of 4 elements"));
  }
}

// After a power cut behind the commit, everything that a rank reported as written must be on disk.
TEST(SharedSave, EveryRankHasSyncedItsFilesWhenItSaysSo) {
  for (const bool indexed : {false, true}) {
    const TempFolder folder;
    const RanksState state(Mesh::standard(1, 3, 1, 1), indexed);
    std::vector<std::vector<std::pair<std::string, fs::path>>> operations(3);
    Ranks ranks(state, folder.path(), [&](int rank, CheckpointWriterOptions& options) {
      options.file_hook = [&operations, rank](std::string_view operation, const fs::path& path) {
        operations[rank].emplace_back(operation, path);
      };
    });
    ranks.expect_save(1);
    for (size_t rank = 0; rank < operations.size(); ++rank) {
      std::set<fs::path> unsynced;
      bool folder_synced = false, said = false;
      for (const auto& [name, path] : operations[rank]) {
        const bool is_part = path.filename().string().starts_with("part-");
        if ((name == "create" || name == "write") && !is_part) unsynced.insert(path);
        if (name == "create" && !is_part) folder_synced = false;
        if (name == "sync") unsynced.erase(path);
        if (name == "sync_folder" && path.extension() == ".partial") folder_synced = true;
        if (name != "rename" || said || !(is_part || path.extension() == ".partial")) continue;
        said = true;  // publishes its part, or as rank 0 commits
        EXPECT_TRUE(unsynced.empty()) << "rank " << rank << ": " << *unsynced.begin();
        EXPECT_TRUE(folder_synced) << "rank " << rank;
      }
      EXPECT_TRUE(said) << "rank " << rank;
    }
  }
}

TEST(SharedSave, SnapshotsHoldOnlyWhatIsStored) {
  const RanksState state(Mesh::standard(1, 4, 1, 1)), alone(Mesh::standard(1, 1, 1, 1));
  int64_t bytes = 0;
  for (int rank = 0; rank < 4; ++rank) bytes += CheckpointWriter::snapshot_bytes(state.specs(rank));
  EXPECT_LT(bytes, CheckpointWriter::snapshot_bytes(alone.specs(0)) + 4 * 4096);
}

TEST(SharedSave, ReplacesAStepAndOnlyRank0RemovesOldOnes) {
  const TempFolder folder;
  const RanksState state(Mesh::standard(1, 2, 1, 1));
  Ranks ranks(state, folder.path(), [](int rank, CheckpointWriterOptions& options) {
    options.retention.keep = rank == 0 ? 2 : 1;
  });
  for (const int64_t step : {1, 2, 3, 3}) ranks.expect_save(step);
  EXPECT_THAT(steps_in(folder.path()), ElementsAre(3, 2));
  EXPECT_EQ(names_in(folder.path()).size(), 2u);
  state.expect_saved(folder / "step-00000003", 3);
}

// Rank 1 comes too late: it learns that the save failed, and later saves are not affected.
TEST(SharedSave, ARankThatDoesNotComeIsNamedWithinTheDeadline) {
  const TempFolder folder;
  const RanksState state(Mesh::standard(1, 3, 1, 1));
  Ranks ranks(state, folder.path(),
              [](int, CheckpointWriterOptions& options) { options.deadline_s = 0.2; });
  ranks.expect_save(1);
  ranks[0].begin(2);
  ranks[2].begin(2);
  for (const int rank : {0, 2}) {
    const auto result = ranks[rank].finish();
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), ErrorCode::kPeerLost);
    EXPECT_THAT(result.error().what(), HasSubstr("rank 0: waiting for the part of rank 1 took"));
  }
  EXPECT_FALSE(fs::exists(folder / "step-00000002.test-2.partial"));
  ranks[1].begin(2);
  EXPECT_THAT(ranks[1].finish().error().what(), HasSubstr("the part of rank 1 took"));
  EXPECT_THAT(steps_in(folder.path()), ElementsAre(1));
  ranks.expect_save(2);
  state.expect_saved(folder / "step-00000002", 2);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("step-00000001", "step-00000002"));
}

TEST(SharedSave, CanBeAborted) {
  const TempFolder folder;
  const RanksState state(Mesh::standard(1, 3, 1, 1));
  std::atomic<bool> ending = false;
  Ranks ranks(state, folder.path(), [&](int, CheckpointWriterOptions& options) {
    options.should_abort = [&ending] { return ending.load(); };
  });
  ranks[0].begin(1);
  ranks[1].begin(1);
  ending = true;
  for (const int rank : {0, 1}) {
    EXPECT_THAT(ranks[rank].finish().error().what(), HasSubstr("the save was given up"));
  }
  EXPECT_TRUE(steps_in(folder.path()).empty());
}

// Rank 1 gives up while rank 0 is about to commit, and finds that it was too late.
TEST(SharedSave, GivingUpBesideACommitHarmsNothing) {
  const TempFolder folder;
  const RanksState state(Mesh::standard(1, 2, 1, 1));
  std::atomic<bool> committing = false, giving_up = false;
  const auto wait_until = [](const auto& done) {
    for (int i = 0; i < 5000 && !done(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  Ranks ranks(state, folder.path(), [&](int rank, CheckpointWriterOptions& options) {
    if (rank == 1) options.should_abort = [&] { return committing.load(); };
    options.file_hook = [&, rank](std::string_view operation, const fs::path& path) {
      if (rank == 0 && operation == "create" && path.filename() == "manifest.json") {
        committing = true;
        wait_until([&] { return giving_up.load(); });
      }
      if (rank == 1 && operation == "rename" && path.extension() == ".partial") {
        giving_up = true;
        wait_until([&] { return fs::exists(folder / "step-00000001"); });
      }
    };
  });
  for (const auto& result : ranks.save(1)) EXPECT_TRUE(result.ok()) << result.error().what();
  EXPECT_TRUE(giving_up);
  state.expect_saved(folder / "step-00000001", 1);
  EXPECT_EQ(names_in(folder / "step-00000001").size(), 5u);
}

TEST(SharedSave, ACopyThatFailsOnOneRankFailsForAll) {
  const TempFolder folder;
  const RanksState state(Mesh::standard(1, 2, 1, 1));
  bool broken = true;
  Ranks ranks(state, folder.path(), [&](int rank, CheckpointWriterOptions& options) {
    if (rank == 0) return;
    options.copy = [&broken](void* target, const void* source, size_t bytes) {
      if (broken) fail(ErrorCode::kIo, "device lost");
      std::memcpy(target, source, bytes);
    };
  });
  ranks[0].begin(1);
  EXPECT_THROW(ranks[1].begin(1), Error);
  EXPECT_THAT(ranks[0].finish().error().what(), HasSubstr("rank 1: device lost"));
  broken = false;
  ranks.expect_save(1);
}

// What another start left is ignored, whatever it says.
TEST(SharedSave, EarlierStartsAreNotMistaken) {
  const TempFolder folder;
  const RanksState state(Mesh::standard(1, 2, 1, 1));
  {
    Ranks ranks(state, folder.path(), [](int, CheckpointWriterOptions& options) {
      options.save_id = "first";
      options.deadline_s = 0.05;
      options.file_hook = [](std::string_view name, const fs::path& path) {
        // From here nobody can give up, and rank 0 dies before it commits.
        if (name == "rename" && path.extension() == ".partial") fail(ErrorCode::kIo, "gone");
      };
    });
    for (const auto& result : ranks.save(5)) EXPECT_FALSE(result.ok());
  }
  EXPECT_THAT(names_in(folder.path()), ElementsAre("step-00000005.first-1.partial"));
  Ranks ranks(state, folder.path(), [](int, CheckpointWriterOptions& options) {
    options.save_id = "second";
    options.deadline_s = 0.2;
  });
  EXPECT_TRUE(names_in(folder.path()).empty());
  ranks.expect_save(5);
  state.expect_saved(folder / "step-00000005", 5);
}

TEST(SharedSave, RefusesOptionsThatCannotBe) {
  const TempFolder folder;
  const auto make = [&](CheckpointWriterOptions options) {
    return error_of([&] { CheckpointWriter(folder.path(), options, {}); });
  };
  EXPECT_THAT(make({.num_ranks = 2}), HasSubstr("save_id \"\""));
  EXPECT_THAT(make({.num_ranks = 2, .save_id = "../x"}), HasSubstr("save_id \"../x\""));
  EXPECT_THAT(make({.rank = 2, .num_ranks = 2, .save_id = "x"}), HasSubstr("rank 2 of 2"));
}

// Looks of all ranks at the file system in a second, once the wait is long.
TEST(PatienceOfMany, DoesNotGrowWithTheNumberOfRanks) {
  for (const int num_ranks : {2, 8, 64, 200, 201, 512, 4096}) {
    double looks = 0;
    for (int rank = 1; rank < num_ranks; ++rank) {
      const double pause = static_cast<double>(patience_of_many(rank, num_ranks).longest().count());
      EXPECT_GE(pause, 85'000) << num_ranks;
      EXPECT_LE(pause, 2'000'000) << num_ranks;
      looks += 1e6 / pause;
    }
    EXPECT_LE(looks, kMostLooks) << num_ranks;
  }
}

}  // namespace
}  // namespace skein
