#include "skein/data/corpus_writer.h"

#include <arrow/array.h>
#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "skein/base/error.h"
#include "skein/data/corpus.h"

namespace skein {
namespace {

using Documents = std::vector<std::string>;
using testing::ElementsAre;

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

}  // namespace
}  // namespace skein
