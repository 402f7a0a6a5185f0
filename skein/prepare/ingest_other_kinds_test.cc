// Files that people have beside documents, or in their place: each is read, or named with what
// helps, and none becomes text in silence.
#include <gmock/gmock.h>

#include "tests/data/ingest_testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class IngestOtherKinds : public Ingest {
 protected:
  static std::string utf16(std::string_view text, bool is_big = false) {
    std::string wide;
    for (const char byte : text) wide += is_big ? std::string{'\0', byte} : std::string{byte, '\0'};
    return wide;
  }
};

TEST_F(IngestOtherKinds, WhatIsNoTextIsNamed) {
  using namespace std::string_literals;
  const std::vector<std::array<std::string, 3>> files = {
      {"card.md", "../../blobs/77aa", "was a link in a cache of the Hugging Face Hub"},
      {"link.parquet", "../../../blobs/5e3f", "was a link in a cache of the Hugging Face Hub"},
      {"report.txt", "%PDF-1.4\nplain so far", "a PDF document, not text"},
      {"letter", "{\\rtf1 plain so far}", "an RTF document, not text"},
      {"print.txt", "%!PS-Adobe-3.0\nplain so far", "a PostScript document, not text"},
      {"x.db", "SQLite format 3\0"s, "an SQLite database, not text"},
      {"x.npy", "\x93NUMPY\1\0v\0{'descr': '<u2'"s, "an array of NumPy"},
      {"corpus.idx", "MMIDIDX\0\0\1\0"s, "an index of tokens that Megatron wrote"},
      {"train.bin", "\x57\x00\x10\x27\x05\x01"s, "numbers, such as tokens"},
      {"x.pkl", "\x80\x04\x95\x10\0"s, "a pickle of Python"},
      {"wiki.xml", "<mediawiki xmlns=\"x\" version=\"0.10\">\n<page>",
       "`pipx run wikiextractor --json -o TEXTS /"},
      {"wiki", "<?xml version=\"1.0\"?>\n<mediawiki>\n<page>",
       "`pipx run wikiextractor --json -o TEXTS /"},
      {"x.ipynb", "{\n \"cells\": []\n}\n", "jupyter nbconvert --to script"},
      {"x.jsonl", "<!DOCTYPE html>\n<html>404</html>", "a page of HTML, not JSON lines"},
      {"x.csv", "<html>404</html>", "a page of HTML, not a table"},
      {"x.parquet", "<html>404</html>", "a page of HTML, not Parquet"},
      {"y.parquet", "{\"text\": \"a\"}\n", "--format jsonl reads it"},
      {"z.parquet", gzip("x"), "gzip data by its first bytes"},
      {"y.arrow", read_file(kCorpusGoldens / "documents.parquet"), "--format parquet reads it"},
      {"a.txt", read_file(kCorpusGoldens / "documents.parquet"), "--format parquet reads it"},
  };
  for (const auto& [name, bytes, words] : files) {
    EXPECT_THAT(error_of({write("in/" + name, bytes)}), AllOf(HasSubstr(name), HasSubstr(words)));
  }
  write("in/real.txt", "text");
  EXPECT_EQ(ingested({folder_ / "in"}), Documents{"text"});
  EXPECT_EQ(report_.num_skipped_files, static_cast<int64_t>(files.size()));
  // Who says that it is text has it as it stands.
  EXPECT_EQ(ingested({folder_ / "in/x.ipynb"}, {.as_text = true}).size(), 1u);
  EXPECT_EQ(ingested({folder_ / "in/wiki.xml"}, {.format = InputFormat::kText}).size(), 1u);
}

TEST_F(IngestOtherKinds, OtherEncodingsAreNamedInEveryFormat) {
  const std::string mark = "\xff\xfe";
  for (const char* name : {"x.txt", "x.jsonl", "x.json", "x.csv", "x"}) {
    EXPECT_THAT(error_of({write(name, mark + utf16("{\"text\": \"a\"}"))}),
                AllOf(HasSubstr("UTF-16"), HasSubstr("`iconv -f UTF-16 -t UTF-8 ")));
  }
  EXPECT_THAT(error_of({write("x.txt", utf16("without a mark"))}), HasSubstr("-f UTF-16LE"));
  EXPECT_THAT(error_of({write("x.txt", utf16("without a mark", true))}), HasSubstr("-f UTF-16BE"));
  EXPECT_EQ(ingested({write("x.txt", "a\r\nb\r\n")}), Documents{"a\r\nb\r\n"});
}

TEST_F(IngestOtherKinds, ContentGoesBeforeANameThatIsWrong) {
  const Documents golden = ingested({kCorpusGoldens / "documents.parquet"});
  EXPECT_EQ(ingested({write("x.jsonl", read_file(kCorpusGoldens / "documents.parquet"))}), golden);
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("x.jsonl: taken for Parquet by the first")));
  EXPECT_THAT(error_of({folder_ / "x.jsonl"}, {.format = InputFormat::kJsonLines}),
              HasSubstr("Parquet by its first bytes, not jsonl: expected --format parquet"));
  const std::string lines = "{\"text\": \"a\"}\n{\"text\": \"b\"}\n";
  EXPECT_EQ(ingested({write("x.txt", lines)}), Documents{lines});
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("x.txt: holds lines of JSON, and is taken")));
  EXPECT_EQ(ingested({folder_ / "x.txt"}, {.format = InputFormat::kText}), Documents{lines});
  EXPECT_THAT(report_.notes, IsEmpty());
  EXPECT_EQ(ingested({write("y.xml", "<?xml version=\"1.0\"?>\n<posts/>")}).size(), 1u);
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("y.xml: XML, taken as text with its tags")));
}

TEST_F(IngestOtherKinds, WhatSystemsAndEditorsLeaveIsPassedOver) {
  write("in/a.txt", "text");
  for (const char* name : {"Thumbs.db", "desktop.ini", "__MACOSX/x.txt", "a.txt~",
                           "a.txt:Zone.Identifier", "b.parquet.incomplete", "_temporary/c.txt"}) {
    write(std::string("in/") + name, "x");
  }
  write("in/.DS_Store", "x");
  write("in/.gitattributes", "x");
  EXPECT_EQ(ingested({folder_ / "in"}), Documents{"text"});
  EXPECT_EQ(report_.passed_over.size(), 8u);
  EXPECT_THAT(report_.passed_over, Contains(HasSubstr("in: 2 hidden files and folders")));
  EXPECT_THAT(report_.passed_over, Contains(HasSubstr("a.txt~: an editor's copy of a file")));
}

TEST_F(IngestOtherKinds, ACardBesideTablesIsNoDocument) {
  const std::string card = "---\nlicense: mit\nconfigs:\n- x\n---\n# A data set\n";
  write("in/README.md", card);
  write("in/data/x.jsonl", "{\"text\": \"a\"}\n");
  EXPECT_EQ(ingested({folder_ / "in"}), Documents{"a"});
  EXPECT_THAT(report_.passed_over, ElementsAre(HasSubstr("README.md: the card of a repository")));
  EXPECT_THAT(report_.notes, IsEmpty());
  // One that is a text among texts is one, and so is one that a person names.
  write("pages/README.md", card);
  write("pages/a.txt", "text");
  EXPECT_EQ(ingested({folder_ / "pages"}), (Documents{card, "text"}));
  EXPECT_EQ(ingested({folder_ / "in/README.md"}), Documents{card});
  // Without those lines it is a text beside tables, and a line says so.
  write("in/README.md", "# A data set\n");
  EXPECT_EQ(ingested({folder_ / "in"}).size(), 2u);
  EXPECT_THAT(report_.notes, ElementsAre(AllOf(HasSubstr("README.md: a plain text file beside "
                                                         "tables or JSON"),
                                               HasSubstr("x.jsonl"))));
  EXPECT_EQ(ingested({folder_ / "in/README.md", folder_ / "in/data/x.jsonl"}).size(), 2u);
  EXPECT_THAT(report_.notes, IsEmpty());  // both were named
}

TEST_F(IngestOtherKinds, OptionsThatContradictAreRefused) {
  const fs::path lines = write("x.jsonl", "{\"text\": \"a\"}\n");
  const IngestOptions separated{.document_separator = "x"};
  EXPECT_THAT(error_of({lines}, {.format = InputFormat::kJsonLines, .document_separator = "x"}),
              HasSubstr("--document-separator with --format jsonl"));
  EXPECT_THAT(error_of({lines}, separated), HasSubstr("no input is one by its name"));
  EXPECT_THAT(error_of({lines}, {.as_text = true, .format = InputFormat::kCsv}),
              HasSubstr("--as-text with --format csv"));
  EXPECT_EQ(ingested({lines, write("y.txt", "1x2")}, separated), (Documents{"a", "1", "2"}));
  EXPECT_THAT(report_.notes, IsEmpty());
  EXPECT_EQ(ingested({write("y.txt", "none")}, separated), Documents{"none"});
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("the --document-separator does not stand")));
  // A web archive is none of the tables that --as-text takes as they stand.
  const std::string wet =
      "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n";
  EXPECT_EQ(ingested({write("x.wet", wet)}, {.as_text = true}), Documents{"abc"});
}

TEST_F(IngestOtherKinds, TablesWithOtherDelimitersAreNamed) {
  EXPECT_THAT(error_of({write("x.csv", "id;text\n1;a\n")}),
              AllOf(HasSubstr("semicolons stand between"), HasSubstr("delimiter=';'")));
  EXPECT_THAT(error_of({write("x.csv", "id\ttext\n1\ta\n")}), HasSubstr("x.tsv` gives it"));
  EXPECT_EQ(ingested({write("x.csv", "text;more\na\n")}, {.text_column = "text;more"}),
            Documents{"a"});
}

TEST_F(IngestOtherKinds, EmptyTablesAreNamed) {
  EXPECT_THAT(error_of({write("x.parquet", "")}),
              HasSubstr("x.parquet: is empty: expected Parquet"));
  EXPECT_THAT(error_of({write("x.arrow", "")}), HasSubstr("x.arrow: is empty: expected Arrow"));
}

}  // namespace
}  // namespace skein
