// Which formats ingestion recognizes, and what it reports about other files.
#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_dict.h>
#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/table.h>
#include <gmock/gmock.h>
#include <parquet/arrow/writer.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/data/ingest_testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class IngestFormats : public Ingest {
 protected:
  // A folder as Dataset.save_to_disk leaves it.
  void save_dataset(const std::string& name, const std::string& more_state = "") {
    write(name + "/state.json",
          R"({"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_split": null)" +
              more_state + "}");
    write(name + "/dataset_info.json", R"({"description": "", "features": {"text": {}}})");
    write(name + "/data-00000-of-00001.arrow", read_file(kCorpusGoldens / "datasets.arrow"));
  }
  Documents golden() { return ingested({kCorpusGoldens / "datasets.arrow"}); }
};

TEST_F(IngestFormats, ASavedDatasetIsItsDataFiles) {
  save_dataset("saved");
  write("saved/cache-0123456789abcdef.arrow", "indices of a shuffle");
  EXPECT_EQ(ingested({folder_ / "saved"}), golden());
  ingested({folder_ / "saved"});
  EXPECT_EQ(report_.num_files, 1);
  EXPECT_EQ(report_.num_skipped_files, 0);
  EXPECT_THAT(report_.passed_over, ElementsAre(HasSubstr("saved: 1 files beside those")));

  fs::remove(folder_ / "saved/data-00000-of-00001.arrow");
  EXPECT_THAT(error_of({folder_ / "saved"}), HasSubstr("lists data-00000-of-00001.arrow, which"));
  save_dataset("selected", R"(, "_indices_data_files": [{"filename": "indices.arrow"}])");
  EXPECT_THAT(error_of({folder_ / "selected"}), HasSubstr("flatten_indices()"));
  write("escape/state.json", R"({"_data_files": [{"filename": "../a.arrow"}]})");
  EXPECT_THAT(error_of({folder_ / "escape"}), HasSubstr("expected data files as"));
}

TEST_F(IngestFormats, SplitsOfADatasetDictAreNotMixed) {
  save_dataset("in/dict/train");
  save_dataset("in/dict/test");
  write("in/dict/dataset_dict.json", R"({"splits": ["train", "test"]})");
  for (const char* name : {"in", "in/dict"}) {
    EXPECT_THAT(error_of({folder_ / name}),
                AllOf(HasSubstr("a saved DatasetDict, whose splits would be mixed"),
                      HasSubstr((folder_ / "in/dict/train").string() + ", " +
                                (folder_ / "in/dict/test").string())));
  }
  EXPECT_FALSE(fs::exists(out()));
  EXPECT_EQ(ingested({folder_ / "in/dict/train"}), golden());
}

TEST_F(IngestFormats, TablesOfSeveralSplitsAreTold) {
  write("hub/data/train-00000-of-00001.jsonl", R"({"text": "train"})");
  write("hub/data/test-00000-of-00001.jsonl", R"({"text": "test"})");
  write("hub/train_test_tools.py", "import test");
  EXPECT_EQ(ingested({folder_ / "hub"}), (Documents{"test", "train", "import test"}));
  EXPECT_THAT(
      report_.notes,
      ElementsAre(AllOf(HasSubstr("several splits"), HasSubstr("test-00000-of-00001.jsonl, ")),
                  AllOf(HasSubstr("train_test_tools.py: a plain text file beside tables or JSON"),
                        HasSubstr("test-00000-of-00001.jsonl"))));
  ingested({folder_ / "hub/data/train-00000-of-00001.jsonl"});
  EXPECT_THAT(report_.notes, ElementsAre());
}

TEST_F(IngestFormats, JsonFilesAreDocuments) {
  const Documents wanted{"one", "two\n", "{]\"\\ drei"};
  const std::string a = R"({"text": "one", "id": 1})", b = R"({"id": [2, {}], "text": "two\n"})",
                    c = R"({"text": "{]\"\\ drei"})";
  const std::string lines = a + "\n" + b + "\r\n\n" + c + "\n";
  EXPECT_EQ(ingested({write("lines.json", lines)}), wanted);
  EXPECT_EQ(ingested({write("lines.ndjson", lines)}), wanted);
  EXPECT_EQ(ingested({write("c4.json.gz", gzip(lines))}), wanted);  // as C4 names its files
  EXPECT_EQ(ingested({write("c4.ndjson.zst", zstd(lines))}), wanted);
  EXPECT_EQ(ingested({write("array.json", " [\n" + a + ",\n" + b + " ," + c + "]\n")}), wanted);
  EXPECT_EQ(ingested({write("array.json.gz", gzip("[" + a + "," + b + "," + c + "]"))}), wanted);
  EXPECT_EQ(ingested({write("mark.json", "\xef\xbb\xbf[" + a + "," + b + "," + c + "]")}), wanted);
  EXPECT_EQ(ingested({write("mark.jsonl", "\xef\xbb\xbf" + lines)}), wanted);
  EXPECT_EQ(ingested({write("pretty.json", "{\n  \"text\":\n  \"one\"\n}\n")}), Documents{"one"});
  EXPECT_EQ(ingested({write("pretty.json", "{\n\"text\": \"one\"} {\"text\": \"two\"}")}),
            (Documents{"one", "two"}));
}

TEST_F(IngestFormats, DamagedJsonFilesAreRefused) {
  const auto error = [&](const std::string& bytes) { return error_of({write("a.json", bytes)}); };
  EXPECT_THAT(error("[{\"text\": \"a\"}"), HasSubstr("a.json:1: not JSON: the array does not end"));
  EXPECT_THAT(error("[\n{\"text\": \"a\"}\n{\"text\": \"b\"}]"), HasSubstr("a.json:3: not JSON"));
  EXPECT_THAT(error("[{\"text\": \"a\"}] x"), HasSubstr("nothing after the array"));
  EXPECT_THAT(error("[\n{\"text\": \"a\"},\n5]"), HasSubstr("a.json:3: is a number"));
  EXPECT_THAT(error("[{\"text\": \"a\"},]"), HasSubstr("not JSON"));
  EXPECT_THAT(error("{\n\"text\": \"a"), HasSubstr("does not end (truncated?)"));
  EXPECT_THAT(error("{\"text\": \"a\"}\n{\"text\":"), HasSubstr("a.json:2: not JSON"));
  EXPECT_THAT(error("}"), HasSubstr("not JSON"));
  EXPECT_THAT(error(std::string("{\"text\":\"abc\"}\0", 15)), HasSubstr("a null byte"));
  EXPECT_THAT(error_of({write("a.json", "[{\"text\": \"" + std::string(5000, 'x') + "\"}]")},
                       {.max_document_bytes = 1000}),
              HasSubstr("a value of more than 1000 bytes"));
  EXPECT_EQ(ingested({write("a.json", "[{\"text\": \"a\"}, {\"id\": 1}, {\"text\": \"b\"}]")},
                     {.skip_invalid_lines = true}),
            (Documents{"a", "b"}));
  EXPECT_EQ(report_.num_invalid_lines, 1);
}

// A null byte ends the text for the parser, so what follows it must not be lost silently.
TEST_F(IngestFormats, NothingHidesBehindANullByte) {
  const std::string line("{\"text\":\"abc\"}\0garbage\n", 23);
  EXPECT_THAT(error_of({write("a.jsonl", line)}),
              HasSubstr("a.jsonl:1: not JSON at byte 15 (a null byte)"));
  EXPECT_EQ(ingested({write("a.jsonl", "{\"text\": \"a\\u0000b\"}")}),
            Documents{std::string("a\0b", 3)});
}

TEST_F(IngestFormats, TablesGiveTheirColumn) {
  const std::string csv =
      "id,text,url\r\n1,plain,u\r\n2,\"quoted, \"\"twice\"\"\r\nand\n on\",u\r\n\r\n3,,u\r\n4,äöü,";
  const Documents wanted{"plain", "quoted, \"twice\"\r\nand\n on", "äöü"};
  EXPECT_EQ(ingested({write("a.csv", csv)}), wanted);
  EXPECT_EQ(report_.num_left_out, 1);
  EXPECT_EQ(ingested({write("a.csv.gz", gzip(csv))}), wanted);
  EXPECT_EQ(ingested({write("a.csv.zst", zstd("\xef\xbb\xbf" + csv))}), wanted);
  EXPECT_EQ(ingested({write("a.csv", "\xef\xbb\xbf\"text\",id\nx,1\n")}), Documents{"x"});
  EXPECT_EQ(ingested({write("a.tsv", "text\tid\na, b\t1\n")}), Documents{"a, b"});
  EXPECT_EQ(ingested({write("one.csv", "text\na\n\nb\n")}), (Documents{"a", "b"}));
  const std::string large(3 << 20, 'x');  // longer than every buffer
  EXPECT_EQ(ingested({write("a.csv", "n,text\n1,\"" + large + "\"\n2,y\n")}),
            (Documents{large, "y"}));

  const auto error = [&](const std::string& bytes) { return error_of({write("a.csv", bytes)}); };
  EXPECT_THAT(error("id,body\n1,x\n"), HasSubstr("0 columns named `text` (its first line: `id`, "
                                                 "`body`)"));
  EXPECT_THAT(error("text,text\n1,x\n"), HasSubstr("2 columns named `text`"));
  EXPECT_THAT(error("id,text\n1,a\n2,b,c\n"), HasSubstr("a.csv:3: a row of 3 fields: expected 2"));
  EXPECT_THAT(error("id,text\n1\n"), HasSubstr("a.csv:2: a row of 1 fields: expected 2"));
  EXPECT_THAT(error("id,text\n1,\"a\n"), HasSubstr("a.csv:2: a quoted field does not end"));
  EXPECT_THAT(error("id,text\n1,\"a\" b\n"), HasSubstr("a.csv:2: text after the closing quote"));
  EXPECT_THAT(error("id,text\n1,caf\xe9 x\n"), HasSubstr("a.csv:2: not UTF-8"));
  EXPECT_THAT(
      error_of({write("a.csv", "text\n" + std::string(5000, 'x'))}, {.max_document_bytes = 1000}),
      HasSubstr("a.csv:2: a field of more than 1000 bytes"));
}

TEST_F(IngestFormats, CompressedTextIsText) {
  EXPECT_EQ(ingested({write("a.txt.gz", gzip("the text\n"))}), Documents{"the text\n"});
  EXPECT_EQ(ingested({write("README.zst", zstd("the text\n"))}), Documents{"the text\n"});
  EXPECT_THAT(error_of({write("a.txt.gz", gzip("caf\xe9 x"))}), HasSubstr("not UTF-8"));
  EXPECT_THAT(error_of({write("bomb.txt.gz", gzip(std::string(64 << 20, 'x')))},
                       {.max_document_bytes = 1 << 20}),
              HasSubstr("more than 1048576 bytes of text"));
}

TEST_F(IngestFormats, GzipMayBeFilledUpWithZeros) {
  const std::string member = gzip("{\"text\": \"a\"}\n"), zeros(100'000, '\0');
  EXPECT_EQ(ingested({write("a.jsonl.gz", member + zeros)}), Documents{"a"});
  EXPECT_EQ(ingested({write("a.jsonl.gz", member + zeros + member)}), (Documents{"a", "a"}));
  EXPECT_THAT(error_of({write("a.jsonl.gz", member + zeros + "x")}), HasSubstr("damaged gzip"));
}

TEST_F(IngestFormats, FilesWithoutAnEndingAreRecognised) {
  const fs::path blobs = folder_ / "blobs";  // as the Hugging Face Hub's cache names them
  write("blobs/0a1b", read_file(kCorpusGoldens / "documents.parquet"));
  write("blobs/2c3d", read_file(kCorpusGoldens / "feather.arrow"));
  write("blobs/4e5f", read_file(kCorpusGoldens / "datasets.arrow"));
  Documents wanted, one = golden();
  for (int i = 0; i < 3; ++i) wanted.insert(wanted.end(), one.begin(), one.end());
  EXPECT_EQ(ingested({blobs}), wanted);
}

TEST_F(IngestFormats, WhatHoldsNoDocumentsIsPassedOverAndSaid) {
  write("in/a.txt", "text");
  const std::vector<std::pair<std::string, std::string>> rest = {
      {"config.json", "{\"hidden_size\": 8}\n"},
      {"broken.json", "// comment\n{\"a\": 1}"},
      {"table.csv", "id,label\n1,x\n"},
      {"texts.zip", std::string("a.txt\0\0\0 text", 13)},
      {"texts.7z.gz", gzip("x")},
      {"image", std::string("plain ASCII\0\0", 13)},
      {"utf16.txt", std::string("\xff\xfe"
                                "a\0b\0",
                                6)},
      {"table.parquet.gz", gzip("x")},
  };
  for (const auto& [name, bytes] : rest) write("in/" + name, bytes);
  EXPECT_EQ(ingested({folder_ / "in"}), Documents{"text"});
  EXPECT_EQ(report_.num_skipped_files, static_cast<int64_t>(rest.size()));
  for (const auto& [name, bytes] : rest) {
    EXPECT_THAT(report_.warnings, Contains(HasSubstr("/" + name + ":"))) << name;
    EXPECT_THAT(error_of({folder_ / "in" / name}), HasSubstr(name + ":")) << name;  // named
  }
  EXPECT_THAT(error_of({folder_ / "in/config.json"}),
              HasSubstr("has no key `text` (its keys: `hidden_size`)"));
  EXPECT_THAT(error_of({folder_ / "in/texts.zip"}),
              AllOf(HasSubstr("a zip archive"), HasSubstr("`unzip -d texts /")));
  EXPECT_THAT(error_of({folder_ / "in/utf16.txt"}), HasSubstr("UTF-16"));
  // The same files as plain text, which is right for source code, for instance.
  EXPECT_EQ(ingested({folder_ / "in/config.json", folder_ / "in/table.csv"}, {.as_text = true}),
            (Documents{"{\"hidden_size\": 8}\n", "id,label\n1,x\n"}));
}

TEST_F(IngestFormats, WhatAWalkLeavesOutIsSaid) {
  write("in/a.txt", "text");
  write("in/.hidden", "x");
  write("in/.git/config", "x");
  write("in/old.arrow.0123.partial", "x");
  write("other/b.txt", "other");
  fs::create_symlink(folder_ / "other", folder_ / "in/link");
  fs::create_symlink(folder_ / "nowhere", folder_ / "in/dangling");
  fs::create_symlink("a.txt", folder_ / "in/again.txt");
  ASSERT_EQ(::mkfifo((folder_ / "in/pipe").c_str(), 0600), 0);
  EXPECT_EQ(ingested({folder_ / "in"}), Documents{"text"});
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("again.txt: the same file as")));
  EXPECT_THAT(
      report_.passed_over,
      ElementsAre(HasSubstr("dangling: a link that leads nowhere"),
                  HasSubstr("link: a link to a folder"), HasSubstr("old.arrow.0123.partial: "),
                  HasSubstr("pipe: no regular file"), HasSubstr("in: 2 hidden")));
}

// Files of all formats whose documents, "one" and "two", are in `column`.
class IngestColumns : public Ingest {
 protected:
  std::vector<fs::path> write_all(const std::string& column) {
    arrow::StringBuilder builder;
    for (const char* text : {"one", "two"}) EXPECT_TRUE(builder.Append(text).ok());
    const auto array = builder.Finish().ValueOrDie();
    const auto schema =
        arrow::schema({arrow::field("id", arrow::utf8()), arrow::field(column, arrow::utf8())});
    const auto table = arrow::Table::Make(schema, {array, array});
    const fs::path parquet = folder_ / "a.parquet", arrow = folder_ / "a.arrow";
    const auto file = arrow::io::FileOutputStream::Open(parquet.string()).ValueOrDie();
    EXPECT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), file, 1024).ok());
    const auto stream = arrow::io::FileOutputStream::Open(arrow.string()).ValueOrDie();
    const auto writer = arrow::ipc::MakeStreamWriter(stream, schema).ValueOrDie();
    EXPECT_TRUE(writer->WriteTable(*table).ok());
    EXPECT_TRUE(writer->Close().ok());
    const auto object = [&](const char* text) {
      return fmt::format(R"({{"id": "x", "{}": "{}"}})", column, text);
    };
    return {parquet, arrow, write("a.jsonl", object("one") + "\n" + object("two") + "\n"),
            write("a.json", "[" + object("one") + ", " + object("two") + "]"),
            write("a.csv", "id," + column + "\nx,one\ny,two\n")};
  }

  const Documents both_{"one", "two"};
};

TEST_F(IngestColumns, AnotherMayHoldTheDocuments) {
  for (const fs::path& file : write_all("body")) {
    EXPECT_EQ(ingested({file}, {.text_column = "body"}), both_) << file;
    EXPECT_THAT(report_.notes, IsEmpty());
    EXPECT_THAT(error_of({file}, {.text_column = "other"}),
                AllOf(HasSubstr("`other`"), HasSubstr("body"), HasSubstr("--text-column")))
        << file;
    EXPECT_THAT(error_of({file}),
                AllOf(HasSubstr("`text`"), HasSubstr("body"), HasSubstr("--text-column")))
        << file;
  }
  const std::string lines = "{\"body\": \"one\", \"text\": 5}\n{\"body\": \"two\"}\n";
  EXPECT_EQ(ingested({write("b.jsonl", lines)}, {.text_column = "body"}), both_);
}

TEST_F(IngestColumns, AreFoundIfNobodyNamesOne) {
  for (const char* column : {"content", "raw_content"}) {
    for (const fs::path& file : write_all(column)) {
      EXPECT_EQ(ingested({file}), both_) << file;
      EXPECT_THAT(report_.notes,
                  ElementsAre(HasSubstr(fmt::format("{}: has no `text`: its documents are `{}` "
                                                    "(--text-column names another)",
                                                    file.filename().string(), column))));
    }
  }
  for (const fs::path& file : write_all("text")) {
    EXPECT_EQ(ingested({file}), both_) << file;
    EXPECT_THAT(report_.notes, IsEmpty());
  }
  // `text` comes first, and has to be a string.
  EXPECT_EQ(ingested({write("b.csv", "content,text\nx,one\ny,two\n")}), both_);
  EXPECT_THAT(error_of({write("b.jsonl", "{\"content\": \"one\", \"text\": 5}\n")}),
              HasSubstr("`text` is a number"));
  write_all("content");
  write("b.jsonl", "{\"text\": \"three\"}\n");
  EXPECT_EQ(ingested({folder_ / "a.csv", folder_ / "a.jsonl", folder_ / "b.jsonl"}),
            (Documents{"one", "two", "one", "two", "three"}));
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("a.csv and 1 other: has no `text`")));
}

void write_arrow(const fs::path& path, const std::shared_ptr<arrow::Array>& column) {
  const auto schema = arrow::schema({arrow::field("text", column->type())});
  const auto stream = arrow::io::FileOutputStream::Open(path.string()).ValueOrDie();
  const auto writer = arrow::ipc::MakeStreamWriter(stream, schema).ValueOrDie();
  ASSERT_TRUE(
      writer->WriteRecordBatch(*arrow::RecordBatch::Make(schema, column->length(), {column})).ok());
  ASSERT_TRUE(writer->Close().ok());
}

TEST_F(IngestFormats, DictionariesAndViewsOfStringsAreCopied) {
  const std::string long_text = "a text that does not lie within its view";
  arrow::StringDictionaryBuilder dictionary;
  arrow::StringViewBuilder views;
  for (const std::string& text : {long_text, std::string("b"), long_text}) {
    ASSERT_TRUE(dictionary.Append(text).ok() && views.Append(text).ok());
  }
  ASSERT_TRUE(dictionary.AppendNull().ok() && views.AppendNull().ok());
  const fs::path file = folder_ / "a.arrow";
  for (arrow::ArrayBuilder* builder : {static_cast<arrow::ArrayBuilder*>(&dictionary),
                                       static_cast<arrow::ArrayBuilder*>(&views)}) {
    write_arrow(file, builder->Finish().ValueOrDie());
    EXPECT_EQ(ingested({file}), (Documents{long_text, "b", long_text}));
    EXPECT_THAT(test::error_of([&] { Corpus{file}; }),
                HasSubstr("expected string or large_string; `skein data ingest"));
    const std::string whole = read_file(file);  // what is damaged is an error, or some answer
    for (size_t i = 0; i < whole.size(); i += 3) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x81);
      write_file_atomic(file, damaged);
      error_of({file}, {.num_threads = 1});
    }
  }
}

TEST_F(IngestFormats, WhatIsNotUtf8IsMendedInColumnsOfAllTypes) {
  arrow::StringBuilder plain;
  arrow::StringDictionaryBuilder dictionary;
  arrow::StringViewBuilder views;
  const fs::path file = folder_ / "a.arrow";
  const auto read = [&](auto& builder) {
    for (const char* text : {"caf\xe9", "good", "a text that does not lie within its view \xff"}) {
      EXPECT_TRUE(builder.Append(text).ok());
    }
    write_arrow(file, builder.Finish().ValueOrDie());
    EXPECT_THAT(error_of({file}), HasSubstr("a.arrow:1: not UTF-8"));
    return ingested({file}, {.invalid_utf8 = InvalidUtf8::kReplace});
  };
  const Documents wanted{"caf\uFFFD", "good", "a text that does not lie within its view \uFFFD"};
  EXPECT_EQ(read(plain), wanted);
  EXPECT_EQ(read(dictionary), wanted);
  EXPECT_EQ(read(views), wanted);
}

int64_t peak_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) << 10;
}

// Every byte of a small file, as sizes and counts among them say other things than there are.
TEST_F(IngestFormats, ParquetThatLiesIsAnErrorOrDocuments) {
  const std::string file = read_file(kCorpusGoldens / "documents.parquet");
  const int64_t peak_before = peak_resident_bytes();
  int num_refused = 0, num_read = 0;
  for (size_t at = 0; at < file.size(); ++at) {
    for (const uint8_t flipped : {0x80, 0xff}) {
      std::string lie = file;
      lie[at] = static_cast<char>(static_cast<uint8_t>(lie[at]) ^ flipped);
      const fs::path path = folder_ / "lie.parquet";
      std::ofstream(path, std::ios::binary) << lie;
      try {
        ReadOptions options;
        options.utf8.invalid = InvalidUtf8::kReplace;
        read_documents(path, options, [](std::string_view text, int64_t) {
          ASSERT_LT(text.size(), size_t{1} << 20);
        });
        ++num_read;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("lie.parquet"));
        ++num_refused;
      }
    }
  }
  EXPECT_GT(num_refused, 1000);
  EXPECT_GT(num_read, 100);
  EXPECT_LT(peak_resident_bytes() - peak_before, int64_t{512} << 20);
}

TEST_F(IngestFormats, DocumentsOfHundredsOfMegabytesPass) {
  std::string text;
  for (int i = 0; text.size() < size_t{220} << 20; ++i) text += fmt::format("line {} of many\n", i);
  EXPECT_EQ(ingested({write("a.jsonl", Json({{"text", text}}).dump() + "\n{\"text\": \"b\"}")}),
            (Documents{text, "b"}));
}

}  // namespace
}  // namespace skein
