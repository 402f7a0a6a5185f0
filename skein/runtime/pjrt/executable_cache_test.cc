#include "skein/runtime/pjrt/executable_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <map>
#include <thread>

#include "skein/base/error.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using test::TempFolder;

constexpr int64_t kMany = 1 << 30;
const std::string kKey = "0123456789abcdef0123456789abcdef";
const std::string kOther = "fedcba9876543210fedcba9876543210";

// A bucket that several machines share.
struct Bucket {
  std::map<std::string, std::string> files;
  int num_asked = 0;
  bool is_down = false;

  SharedFiles shared() {
    return {.place = "s3://team/compiled",
            .read = [this](const std::string& name) -> std::optional<std::string> {
              ++num_asked;
              if (is_down) throw Error(ErrorCode::kIo, "no answer");
              if (!files.contains(name)) return std::nullopt;
              return files.at(name);
            },
            .write =
                [this](const std::string& name, std::string_view bytes) {
                  ++num_asked;
                  if (is_down) throw Error(ErrorCode::kIo, "no answer");
                  files[name] = bytes;
                }};
  }
};

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

TEST(ExecutableCache, FindsWhatAnotherProcessAdded) {
  const TempFolder folder;
  ExecutableCache(folder / "cache", kMany, {}).add(kKey, "forward", "machine code");
  ExecutableCache cache(folder / "cache", kMany, {});
  EXPECT_EQ(cache.find(kKey, "forward"), "machine code");
  EXPECT_EQ(cache.find(kOther, "forward"), std::nullopt);
}

TEST(ExecutableCache, TakesNoFileThatIsNotWhole) {
  const TempFolder folder;
  const std::string good = cache_file_text(kKey, "machine code");
  std::vector<std::string> wrong = {cache_file_text(kOther, "machine code"), good + "x", "",
                                    std::string(1000, '\n'), std::string(1000, 'x')};
  for (size_t cut = 0; cut < good.size(); ++cut) wrong.push_back(good.substr(0, cut));
  for (size_t i = 0; i < good.size(); ++i) {
    wrong.push_back(good);
    wrong.back()[i] ^= 1;
  }
  for (const std::string& file : wrong) {
    EXPECT_THROW(executable_of_cache_file(kKey, file), Error) << file;
  }
  EXPECT_EQ(executable_of_cache_file(kKey, good), "machine code");
  ExecutableCache cache(folder.path(), kMany, {});
  for (const std::string& file : {wrong.front(), wrong.back(), std::string()}) {
    cache.add(kKey, "forward", "machine code");
    write_file_atomic(files_in(folder.path()).at(0), file);
    EXPECT_EQ(cache.find(kKey, "forward"), std::nullopt) << file;
    EXPECT_TRUE(files_in(folder.path()).empty());
  }
}

TEST(ExecutableCache, SaysWhichVersionAFileHas) {
  std::string file = cache_file_text(kKey, "machine code");
  file.replace(file.find(" 1 "), 3, " 2 ");
  try {
    executable_of_cache_file(kKey, file);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_STREQ(error.what(), "its format has version 2, expected 1");
  }
}

TEST(ExecutableCache, RemovesWhatWasNotUsedForLongest) {
  const TempFolder folder;
  const std::string code(1000, 'x');
  const auto key = [](int i) { return std::string(31, '0') + std::to_string(i); };
  ExecutableCache cache(folder.path(), 3500, {});  // of three files
  for (int i = 0; i < 3; ++i) cache.add(key(i), "forward", code);
  const auto hour = std::chrono::hours(1);
  for (const fs::path& file : files_in(folder.path())) {
    const int i = file.stem().string().back() - '0';
    fs::last_write_time(file, fs::file_time_type::clock::now() - (10 - i) * hour);
  }
  EXPECT_TRUE(cache.find(key(0), "forward"));  // which makes it the newest
  cache.add(key(3), "forward", code);
  EXPECT_TRUE(cache.find(key(0), "forward"));
  EXPECT_FALSE(cache.find(key(1), "forward"));
  EXPECT_TRUE(cache.find(key(2), "forward"));
  EXPECT_TRUE(cache.find(key(3), "forward"));
}

TEST(ExecutableCache, RemovesWhatADeadProcessWasWriting) {
  const TempFolder folder;
  const fs::path old = folder / "x.executable.123.partial", now = folder / "y.executable.4.partial";
  write_file_atomic(old, "half");
  write_file_atomic(now, "half");
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(25));
  ExecutableCache(folder.path(), kMany, {}).add(kKey, "forward", "machine code");
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(now));
}

TEST(ExecutableCache, GoesOnWithoutAFolderThatCannotBeWritten) {
  const TempFolder folder;
  write_file_atomic(folder / "file", "");
  ExecutableCache cache(folder / "file/cache", kMany, {});
  EXPECT_EQ(cache.find(kKey, "forward"), std::nullopt);
  cache.add(kKey, "forward", "machine code");
  EXPECT_EQ(cache.find(kKey, "forward"), std::nullopt);
}

// A limit on the size of files stands for a disk that is full.
TEST(ExecutableCache, GoesOnWhereTheDiskIsFull) {
  const TempFolder folder;
  ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const struct rlimit small = {1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  ExecutableCache cache(folder.path(), kMany, {});
  cache.add(kKey, "forward", std::string(5000, 'c'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(files_in(folder.path()).empty());
  EXPECT_EQ(cache.find(kKey, "forward"), std::nullopt);
}

TEST(ExecutableCache, MachinesFillOneBucketForEachOther) {
  const TempFolder folder;
  Bucket bucket;
  ExecutableCache first(folder / "first", kMany, bucket.shared());
  EXPECT_EQ(first.find(kKey, "forward"), std::nullopt);
  first.add(kKey, "forward", "machine code");
  EXPECT_EQ(bucket.files.size(), 1u);
  ExecutableCache second(folder / "second", kMany, bucket.shared());
  EXPECT_EQ(second.find(kKey, "forward"), "machine code");
  const int asked = bucket.num_asked;
  EXPECT_EQ(second.find(kKey, "forward"), "machine code");  // from its own disk
  EXPECT_EQ(bucket.num_asked, asked);
}

TEST(ExecutableCache, DoesNotTakeADamagedObject) {
  const TempFolder folder;
  Bucket bucket;
  ExecutableCache(folder / "first", kMany, bucket.shared()).add(kKey, "forward", "machine code");
  bucket.files.begin()->second.pop_back();
  ExecutableCache second(folder / "second", kMany, bucket.shared());
  EXPECT_EQ(second.find(kKey, "forward"), std::nullopt);
  second.add(kKey, "forward", "machine code");  // and mends it
  EXPECT_EQ(ExecutableCache(folder / "third", kMany, bucket.shared()).find(kKey, "forward"),
            "machine code");
}

TEST(ExecutableCache, AsksABucketThatDoesNotAnswerOnce) {
  const TempFolder folder;
  Bucket bucket;
  bucket.is_down = true;
  ExecutableCache cache(folder / "cache", kMany, bucket.shared());
  EXPECT_EQ(cache.find(kKey, "forward"), std::nullopt);
  cache.add(kKey, "forward", "machine code");
  EXPECT_EQ(cache.find(kOther, "backward"), std::nullopt);
  EXPECT_EQ(bucket.num_asked, 1);
  EXPECT_EQ(cache.find(kKey, "forward"), "machine code");
}

TEST(ExecutableCache, SeveralMayFillItAtOnce) {
  const TempFolder folder;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      ExecutableCache cache(folder.path(), kMany, {});
      for (int j = 0; j < 20; ++j) {
        const auto found = cache.find(kKey, "forward");
        EXPECT_TRUE(!found || *found == std::string(100'000, 'c'));
        cache.add(kKey, "forward", std::string(100'000, 'c'));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(files_in(folder.path()).size(), 1u);
}

}  // namespace
}  // namespace skein
