// Documents that lie inside objects and structures, and what is said of a file that has them there.
#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_nested.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/table.h>
#include <gmock/gmock.h>
#include <parquet/arrow/writer.h>

#include "tests/data/ingest_testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class IngestNested : public Ingest {
 protected:
  // `data`, a structure with a number and a text: "one", null where the structure is, "two".
  static std::shared_ptr<arrow::Table> table(bool is_wide = false) {
    const auto type =
        arrow::struct_({arrow::field("n", arrow::int64()),
                        arrow::field("text", is_wide ? arrow::large_utf8() : arrow::utf8())});
    const auto number = std::make_shared<arrow::Int64Builder>();
    std::shared_ptr<arrow::ArrayBuilder> text;
    const auto narrow = std::make_shared<arrow::StringBuilder>();
    const auto wide = std::make_shared<arrow::LargeStringBuilder>();
    is_wide ? text = wide : text = narrow;
    arrow::StructBuilder rows(type, arrow::default_memory_pool(), {number, text});
    const auto append = [&](const char* value) {
      EXPECT_TRUE(rows.Append().ok() && number->Append(1).ok());
      EXPECT_TRUE((is_wide ? wide->Append(value) : narrow->Append(value)).ok());
    };
    append("one");
    EXPECT_TRUE(rows.AppendNull().ok());
    append("two");
    const auto array = rows.Finish().ValueOrDie();
    arrow::Int64Builder ids;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(ids.Append(i).ok());
    return arrow::Table::Make(
        arrow::schema({arrow::field("id", arrow::int64()), arrow::field("data", type)}),
        {ids.Finish().ValueOrDie(), array});
  }
  fs::path parquet(const std::string& name, const std::shared_ptr<arrow::Table>& table) {
    const auto file = arrow::io::FileOutputStream::Open((folder_ / name).string()).ValueOrDie();
    EXPECT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), file, 1024).ok());
    EXPECT_TRUE(file->Close().ok());
    return folder_ / name;
  }
  fs::path arrow_stream(const std::string& name, const std::shared_ptr<arrow::Table>& table) {
    const auto file = arrow::io::FileOutputStream::Open((folder_ / name).string()).ValueOrDie();
    const auto writer = arrow::ipc::MakeStreamWriter(file, table->schema()).ValueOrDie();
    EXPECT_TRUE(writer->WriteTable(*table).ok() && writer->Close().ok());
    return folder_ / name;
  }

  const IngestOptions inside_{.text_column = "data.text"};
  const Documents both_{"one", "two"};
};

TEST_F(IngestNested, APathOfKeysLeadsToThem) {
  const std::string one = R"({"data": {"n": [1, {"text": "no"}], "text": "one"}, "text": 5})";
  const std::string two = R"({"text": "no", "data": {"text": "t\u0077o", "more": {"text": "no"}}})";
  EXPECT_EQ(ingested({write("x.jsonl", one + "\n" + two + "\n")}, inside_), both_);
  EXPECT_EQ(ingested({write("x.json", "[" + one + ",\n" + two + "]")}, inside_), both_);
  EXPECT_THAT(report_.notes, IsEmpty());
  EXPECT_EQ(
      ingested({write("x.jsonl", R"({"a": {"b": {"c": "deep"}}})")}, {.text_column = "a.b.c"}),
      Documents{"deep"});
  // Of equal keys the last one counts; what the fast reader leaves to the full one is the same.
  const std::string large = std::string("{\"x\": 1") + std::string(300, '0') + ", ";
  for (const std::string& start : {std::string("{"), large}) {
    const auto read = [&](const std::string& rest) {
      return ingested({write("x.jsonl", start + rest)}, inside_);
    };
    EXPECT_EQ(read(R"("data": {"text": "a"}, "data": {"text": "b"}})"), Documents{"b"});
    EXPECT_EQ(read(R"("data": 5, "data": {"text": "a", "text": "b"}})"), Documents{"b"});
    EXPECT_THAT(
        error_of({write("x.jsonl", start + R"("data": {"text": "a"}, "data": 5})")}, inside_),
        HasSubstr("has no key `data.text`"));
    EXPECT_THAT(error_of({write("x.jsonl", start + R"("data": [{"text": "a"}]})")}, inside_),
                HasSubstr("has no key `data.text`"));
    EXPECT_THAT(error_of({write("x.jsonl", start + R"("data": {"text": 7}})")}, inside_),
                HasSubstr("`data.text` is a number: expected a string"));
  }
}

TEST_F(IngestNested, AKeyThatHasTheDotGoesBeforeAPath) {
  const std::string object = R"({"data": {"text": "inside"}, "data.text": "outside"})";
  EXPECT_EQ(ingested({write("x.jsonl", object)}, inside_), Documents{"outside"});
  EXPECT_EQ(ingested({write("x.csv", "id,data.text\n1,cell\n")}, inside_), Documents{"cell"});
  arrow::StringBuilder texts;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(texts.Append("outside").ok());
  const auto table =
      IngestNested::table()
          ->AddColumn(0, arrow::field("data.text", arrow::utf8()),
                      std::make_shared<arrow::ChunkedArray>(texts.Finish().ValueOrDie()))
          .ValueOrDie();
  const Documents outside(3, "outside");
  EXPECT_EQ(ingested({parquet("x.parquet", table)}, inside_), outside);
  EXPECT_EQ(ingested({arrow_stream("x.arrow", table)}, inside_), outside);
}

TEST_F(IngestNested, StructuresOfTablesAreRead) {
  for (const bool is_wide : {false, true}) {
    EXPECT_EQ(ingested({parquet("x.parquet", table(is_wide))}, inside_), both_);
    EXPECT_EQ(report_.num_left_out, 1);  // null
    EXPECT_EQ(ingested({arrow_stream("x.arrow", table(is_wide))}, inside_), both_);
    EXPECT_EQ(report_.num_left_out, 1);
  }
  EXPECT_THAT(error_of({folder_ / "x.arrow"}, {.text_column = "data.n"}),
              HasSubstr("column `data.n` is of type int64"));
  EXPECT_THAT(error_of({folder_ / "x.parquet"}, {.text_column = "data.n"}),
              HasSubstr("column `data.n` is nested, of type INT64"));
  EXPECT_THAT(error_of({folder_ / "x.arrow"}, {.text_column = "data.text.more"}),
              HasSubstr("has 0 columns named `data.text.more`"));
  const std::string whole = read_file(folder_ / "x.arrow");  // damaged: an error, or some answer
  for (size_t i = 0; i < whole.size(); i += 2) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x81);
    write("y.arrow", damaged);
    IngestOptions options = inside_;
    options.num_threads = 1;
    error_of({folder_ / "y.arrow"}, options);
  }
}

TEST_F(IngestNested, TheErrorNamesTheOption) {
  const std::string nested = "{\"data\": {\"text\": \"one\"}}\n";
  for (const fs::path& file : {parquet("x.parquet", table()), arrow_stream("x.arrow", table()),
                               write("x.jsonl", nested), write("x.json", "[" + nested + "]")}) {
    EXPECT_THAT(error_of({file}), HasSubstr("it has one inside: --text-column data.text reads it"));
  }
  EXPECT_THAT(error_of({write("x.jsonl", R"({"a": {"text": "x"}, "b": {"c": {"content": "y"}}})")}),
              HasSubstr("it has some inside, a.text, b.c.content: --text-column a.text reads"));
  EXPECT_THAT(error_of({write("x.jsonl", R"({"a": {"text": 5}})")}), Not(HasSubstr("inside")));
}

TEST_F(IngestNested, JsonOfOtherShapesIsNamedWithWhatMakesLinesOfIt) {
  const auto error = [&](const std::string& bytes) { return error_of({write("x.json", bytes)}); };
  const std::string jq = "`jq -c '.data[]' " + (folder_ / "x.json").string() + " > NEW.jsonl`";
  EXPECT_THAT(error(R"({"version": 1, "data": [{"text": "a"}, {"text": "b"}]})"), HasSubstr(jq));
  EXPECT_THAT(error(R"({"data": [{"title": "a", "paragraphs": [{"context": "c"}]}]})"),
              HasSubstr(jq));
  EXPECT_THAT(error(R"({"text": {"0": "a", "1": "b"}})"), HasSubstr("jq -c '.text[] | {text: .}'"));
  EXPECT_THAT(error(R"(["a", "b"])"), HasSubstr("'.[] | {text: .}'"));
  EXPECT_THAT(error_of({write("x.jsonl", "\"a\"\n\"b\"\n")}), HasSubstr("jq -c '{text: .}'"));
  EXPECT_THAT(error_of({write("x.jsonl", "{\n  \"text\": \"a\"\n}\n")}),
              AllOf(HasSubstr("--format json reads them"), Not(HasSubstr("--skip-invalid-lines"))));
  EXPECT_EQ(ingested({folder_ / "x.jsonl"}, {.format = InputFormat::kJson}), Documents{"a"});
}

}  // namespace
}  // namespace skein
