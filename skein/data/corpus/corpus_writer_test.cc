#include "skein/data/corpus/corpus_writer.h"

#include <arrow/array.h>
#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <utility>

#include "skein/base/error.h"
#include "skein/data/corpus/corpus.h"

namespace skein {
namespace {

using Documents = std::vector<std::string>;

class CorpusBytes : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        fmt::format("bytes-{}-{}", testing::UnitTest::GetInstance()->current_test_info()->name(),
                    ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string written(const Documents& documents) {
    CorpusWriter writer(folder_ / "wanted.arrow");
    for (const std::string& text : documents) writer.append(text);
    writer.commit();
    return read_file(folder_ / "wanted.arrow");
  }
  // A file as take_file() wants it.
  fs::path texts(const std::string& text) {
    const fs::path path = folder_ / "texts";
    write_file_atomic(path, std::string(kCorpusTextBegin, 'h') + text);
    return path;
  }
  fs::path out() const { return folder_ / "out.arrow"; }

  fs::path folder_;
};

// What Arrow itself says of it.
TEST_F(CorpusBytes, HoldTheTextFirst) {
  const std::string bytes = written({"first", "zweites äöü", "", "x"});
  EXPECT_EQ(bytes.substr(kCorpusTextBegin, 20), "firstzweites äöüx");
  const auto file = arrow::io::ReadableFile::Open(folder_ / "wanted.arrow").ValueOrDie();
  const auto reader = arrow::ipc::RecordBatchStreamReader::Open(file).ValueOrDie();
  std::shared_ptr<arrow::RecordBatch> batch, end;
  ASSERT_TRUE(reader->ReadNext(&batch).ok());
  ASSERT_TRUE(batch->ValidateFull().ok());
  const auto& column = static_cast<const arrow::LargeStringArray&>(*batch->column(0));
  ASSERT_EQ(column.length(), 4);
  EXPECT_EQ(column.GetString(1), "zweites äöü");
  EXPECT_EQ(column.GetString(2), "");
  ASSERT_TRUE(reader->ReadNext(&end).ok());
  EXPECT_EQ(end, nullptr);
  EXPECT_EQ(file->Tell().ValueOrDie(), static_cast<int64_t>(bytes.size()));
}

TEST_F(CorpusBytes, AreTheSameWhereAFileIsTaken) {
  const std::string wanted = written({"abc", "de", "f"});
  const fs::path file = texts("abcdefand what is cut off" + std::string(10'000, 'x'));
  CorpusWriter writer(out());
  const int64_t index = writer.take_file(file);
  EXPECT_EQ(writer.take_file(file), index);
  int64_t begin = kCorpusTextBegin;
  for (const int64_t size : {3, 2, 1}) {
    writer.append({index, begin, size});
    begin += size;
  }
  writer.commit();
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ(read_file(out()), wanted);
}

// Where one of its documents is left out, or another comes between, it is copied and stays.
TEST_F(CorpusBytes, AreTheSameWhereAFileCannotBeTaken) {
  const fs::path file = texts("abcdef");
  const std::string before = read_file(file);
  for (const bool leaves_out : {false, true}) {
    CorpusWriter writer(out());
    const int64_t index = writer.take_file(file);
    writer.append({index, kCorpusTextBegin + 1, 2});
    if (!leaves_out) writer.append("between");
    writer.append({index, kCorpusTextBegin + 3, 3});
    writer.commit();
    EXPECT_EQ(read_file(out()),
              written(leaves_out ? Documents{"bc", "def"} : Documents{"bc", "between", "def"}));
    EXPECT_EQ(read_file(file), before);
  }
}

TEST_F(CorpusBytes, OfNoDocumentsAreACorpus) {
  written({});
  EXPECT_EQ(Corpus(folder_ / "wanted.arrow").num_documents(), 0);
}

TEST_F(CorpusBytes, LeavesTheOldFileUntilItCommits) {
  const fs::path path = folder_ / "corpus.arrow";
  write_file_atomic(path, "old");
  {
    CorpusWriter abandoned(path);
    abandoned.append("text");
  }
  EXPECT_EQ(read_file(path), "old");
  CorpusWriter writer(path);
  writer.append("text");
  writer.commit();
  EXPECT_EQ(Corpus(path).document(0).str(), "text");
}

TEST_F(CorpusBytes, WhatAKilledProcessLeftIsRemoved) {
  const fs::path path = folder_ / "corpus.arrow", left = unique_partial(path);
  write_file_atomic(left, "half");
  CorpusWriter writer(path);
  writer.append("text");
  writer.commit();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_EQ(std::distance(fs::directory_iterator(path.parent_path()), {}), 1);
}

TEST_F(CorpusBytes, AFailedWriteNamesTheFileAndLeavesTheOldOne) {
  const fs::path path = folder_ / "corpus.arrow";
  write_file_atomic(path, "old");
  CorpusWriter writer(path);
  writer.append(std::string(60'000, 'x'));
  // The text alone fits below the limit, the stream does not.
  const auto previous_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlim_t previous_limit = std::exchange(limit.rlim_cur, 60'100);
  setrlimit(RLIMIT_FSIZE, &limit);
  std::string what;
  try {
    writer.commit();
  } catch (const Error& error) {
    what = error.what();
  }
  limit.rlim_cur = previous_limit;
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, previous_handler);
  EXPECT_NE(what.find(".partial: File too large"), std::string::npos) << what;
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(path.parent_path()), {}), 1);
}

int64_t peak_resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6));
  }
  return -1;
}

TEST_F(CorpusBytes, MemoryDoesNotGrowWithTheCorpus) {
  const fs::path path = folder_ / "corpus.arrow";
  const std::string text(100'000, 'x');
  const int64_t before = peak_resident_kib();
  CorpusWriter writer(path);
  for (int i = 0; i < 4000; ++i) writer.append(text);  // 400 MB
  writer.commit();
  EXPECT_LT(peak_resident_kib() - before, 48 << 10);
  EXPECT_EQ(Corpus(path).num_bytes(), 400'000'000);
  fs::remove(path);
}

}  // namespace
}  // namespace skein
