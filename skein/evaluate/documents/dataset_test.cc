#include "skein/evaluate/documents/dataset.h"

#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/json/from_string.h>
#include <arrow/table.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>

#include <cstdlib>
#include <fstream>

#include "skein/base/error.h"
#include "skein/evaluate/documents/table_file.h"
#include "skein/jinja/values/printed.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DatasetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(::testing::TempDir()) / ("dataset_" + name);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    ::setenv("HOME", (folder_ / "home").c_str(), 1);
    for (const char* variable : {"HF_HOME", "HF_DATASETS_CACHE", "HF_HUB_CACHE"}) {
      ::unsetenv(variable);
    }
  }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  // As save_to_disk writes a split.
  void save(const std::string& name, const arrow::Table& table) const {
    write(name + "/state.json", R"({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]})");
    write_stream(folder_ / name / "data-00000-of-00001.arrow", table);
  }

  static void write_stream(const fs::path& path, const arrow::Table& table) {
    auto file = arrow::io::FileOutputStream::Open(path.string()).ValueOrDie();
    auto writer = arrow::ipc::MakeStreamWriter(file, table.schema()).ValueOrDie();
    ASSERT_TRUE(writer->WriteTable(table).ok());
    ASSERT_TRUE(writer->Close().ok());
    ASSERT_TRUE(file->Close().ok());
  }

  static void write_parquet(const fs::path& path, const arrow::Table& table) {
    auto file = arrow::io::FileOutputStream::Open(path.string()).ValueOrDie();
    ASSERT_TRUE(parquet::arrow::WriteTable(table, arrow::default_memory_pool(), file, 100).ok());
    ASSERT_TRUE(file->Close().ok());
  }

  static std::shared_ptr<arrow::Table> questions(const std::string& rows) {
    const auto choices = arrow::struct_({arrow::field("text", arrow::list(arrow::utf8())),
                                         arrow::field("label", arrow::list(arrow::utf8()))});
    const auto type = arrow::struct_(
        {arrow::field("question", arrow::utf8()), arrow::field("choices", choices),
         arrow::field("answer", arrow::int64()), arrow::field("score", arrow::float32())});
    const auto array = arrow::json::ArrayFromJSONString(type, rows).ValueOrDie();
    return arrow::Table::FromRecordBatches(
               {arrow::RecordBatch::FromStructArray(array).ValueOrDie()})
        .ValueOrDie();
  }

  Documents split(DatasetName name, const std::string& split_name) const {
    return Dataset(std::move(name), {folder_}).split(split_name);
  }
  static std::vector<std::string> shown(const Documents& documents) {
    std::vector<std::string> lines;
    jinja::Budget budget{jinja::Limits{}};
    for (const auto& row : documents.rows) lines.push_back(jinja::represented(row, budget));
    return lines;
  }
  template <class F>
  static std::string error_of(F&& f) {
    try {
      f();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

constexpr const char* kRows = R"([
  {"question": "1 + 1?", "choices": {"text": ["one", "zwei"], "label": ["A", "B"]},
   "answer": 1, "score": 0.5},
  {"question": "né?", "choices": {"text": [], "label": []}, "answer": null, "score": 2}])";
constexpr const char* kFirst =
    "{'question': '1 + 1?', 'choices': {'text': ['one', 'zwei'], 'label': ['A', 'B']}, "
    "'answer': 1, 'score': 0.5}";
constexpr const char* kSecond =
    "{'question': 'né?', 'choices': {'text': [], 'label': []}, 'answer': None, 'score': 2.0}";

TEST_F(DatasetTest, EveryFormatHasTheSameRows) {
  const auto table = questions(kRows);
  save("org/set/name/test", *table);
  write_parquet(folder_ / "org/set/x.parquet", *table);
  write("org/set/x.jsonl",
        R"({"question": "1 + 1?", "choices": {"text": ["one", "zwei"], "label": ["A", "B"]}, )"
        R"("answer": 1, "score": 0.5})"
        "\n"
        R"({"question": "né?", "choices": {"text": [], "label": []}, "answer": null, "score": 2})"
        "\n");
  const Documents saved = split({"org/set", "name", {}}, "test");
  EXPECT_THAT(saved.features, ElementsAre("question", "choices", "answer", "score"));
  EXPECT_THAT(shown(saved), ElementsAre(kFirst, kSecond));
  EXPECT_THAT(shown(read_table_files({folder_ / "org/set/x.parquet"})),
              ElementsAre(kFirst, kSecond));
  EXPECT_THAT(shown(read_table_files({folder_ / "org/set/x.jsonl"})), ElementsAre(kFirst, kSecond));
}

TEST_F(DatasetTest, JsonMayBeAListAndColumnsMayBeAbsent) {
  write("x.json", R"([{"a": 1}, {"b": "t", "a": 2}])");
  EXPECT_THAT(shown(read_table_files({folder_ / "x.json"})),
              ElementsAre("{'a': 1, 'b': None}", "{'a': 2, 'b': 't'}"));
  write("y.csv", "a,b\n1,\"x, y\"\n2,z\n");
  EXPECT_THAT(shown(read_table_files({folder_ / "y.csv"})),
              ElementsAre("{'a': 1, 'b': 'x, y'}", "{'a': 2, 'b': 'z'}"));
}

TEST_F(DatasetTest, ADataSetIsFoundByItsNames) {
  const auto table = questions(kRows);
  save("set/plain_text/validation", *table);
  EXPECT_EQ(split({"org/set", "", {}}, "validation").rows.size(), 2U);
  EXPECT_EQ(split({"org/set", "main", {}}, "validation").rows.size(), 2U);
  // A name that is not there is not another one.
  EXPECT_THAT(error_of([&] {
                split({"org/set", "anatomy", {}}, "validation");
              }),
              AllOf(HasSubstr("anatomy of org/set: not on this machine"),
                    HasSubstr("org/set/anatomy"), HasSubstr("--data")));
  EXPECT_THAT(error_of([&] {
                split({"set", "", {}}, "test");
              }),
              AllOf(HasSubstr("has no split test"), HasSubstr("there are validation")));
}

TEST_F(DatasetTest, SplitsAreWordsInTheNamesOfFiles) {
  write("a/data/test-00000-of-00002.jsonl", "{\"n\": 1}\n");
  write("a/data/test-00001-of-00002.jsonl", "{\"n\": 2}\n");
  write("a/data/latest.jsonl", "{\"n\": 3}\n");
  write("a/data/dev.jsonl", "{\"n\": 4}\n");
  EXPECT_THAT(shown(split({"a", "", {}}, "test")), ElementsAre("{'n': 1}", "{'n': 2}"));
  EXPECT_THAT(shown(split({"a", "", {}}, "validation")), ElementsAre("{'n': 4}"));
}

TEST_F(DatasetTest, CachesOfHuggingFaceAreRead) {
  const auto table = questions(kRows);
  const fs::path cached =
      folder_ / "home/.cache/huggingface/datasets/org___set/anatomy/0.0.0/0123abcd";
  fs::create_directories(cached);
  write_stream(cached / "set-test.arrow", *table);
  const fs::path snapshot =
      folder_ / "home/.cache/huggingface/hub/datasets--org--other/snapshots/1f";
  fs::create_directories(snapshot / "data");
  write_parquet(snapshot / "data/train-00000-of-00001.parquet", *table);
  EXPECT_EQ(split({"org/set", "anatomy", {}}, "test").rows.size(), 2U);
  EXPECT_EQ(split({"org/other", "", {}}, "train").rows.size(), 2U);
}

TEST_F(DatasetTest, FilesMayBeNamed) {
  write("x/a.jsonl", "{\"n\": 1}\n");
  auto files = std::make_shared<jinja::Dict>();
  files->set(jinja::Value::string("test"), jinja::Value::string("x/a.jsonl"));
  auto kwargs = std::make_shared<jinja::Dict>();
  kwargs->set(jinja::Value::string("data_files"), jinja::Value::of(jinja::Kind::kDict, files));
  const DatasetName name = {"json", "", jinja::Value::of(jinja::Kind::kDict, kwargs)};
  EXPECT_THAT(shown(split(name, "test")), ElementsAre("{'n': 1}"));
  EXPECT_THAT(error_of([&] { split(name, "train"); }), HasSubstr("has no split train"));
}

TEST_F(DatasetTest, WrongFilesAreNamed) {
  write("broken.parquet", "PAR1 but no more");
  EXPECT_THAT(error_of([&] { read_table_files({folder_ / "broken.parquet"}); }),
              HasSubstr("broken.parquet: cannot be read"));
  write("broken.arrow", "no table");
  EXPECT_THAT(error_of([&] { read_table_files({folder_ / "broken.arrow"}); }),
              HasSubstr("broken.arrow: cannot be read"));
  write("a.jsonl", "{\"n\": 1}\n");
  write("b.jsonl", "{\"m\": 1}\n");
  EXPECT_THAT(error_of([&] {
                read_table_files({folder_ / "a.jsonl", folder_ / "b.jsonl"});
              }),
              AllOf(HasSubstr("b.jsonl: has the columns m"), HasSubstr("expected n")));
  write("s/empty.jsonl", "");
  EXPECT_NE(error_of([&] { read_table_files({folder_ / "s/empty.jsonl"}); }), "");
}

}  // namespace
}  // namespace skein
