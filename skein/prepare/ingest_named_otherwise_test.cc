// Files whose names do not say what is in them, and inputs that are given twice.
#include <gmock/gmock.h>

#include "tests/data/ingest_testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kLines = "{\"text\": \"a\"}\n{\"text\": \"b\"}\n";

class IngestNamedOtherwise : public Ingest {
 protected:
  const Documents both_{"a", "b"};
};

TEST_F(IngestNamedOtherwise, EndingsOfTheSameMeaning) {
  for (const char* name : {"x.jl", "x.jsonlines", "x.JSONL"}) {
    EXPECT_EQ(ingested({write(name, kLines)}), both_) << name;
    EXPECT_THAT(report_.notes, ElementsAre()) << name;
  }
  EXPECT_EQ(ingested({write("x.jsonl.gzip", gzip(kLines))}), both_);
  EXPECT_EQ(ingested({write("x.jl.zstd", zstd(kLines))}), both_);
  const Documents golden = ingested({kCorpusGoldens / "datasets.arrow"});
  EXPECT_EQ(ingested({write("x.pq", read_file(kCorpusGoldens / "documents.parquet"))}), golden);
  EXPECT_EQ(ingested({write("x.ipc", read_file(kCorpusGoldens / "feather.arrow"))}), golden);
  EXPECT_EQ(ingested({write("x.arrows", read_file(kCorpusGoldens / "datasets.arrow"))}), golden);
}

TEST_F(IngestNamedOtherwise, FirstBytesSayWhatNamesDoNot) {
  write("in/part-00000", kLines);
  write("in/part-00001.gz", gzip(kLines));
  write("in/part-00002", zstd(kLines));
  write("in/part-00003.data", "\xef\xbb\xbf" + kLines);
  write("in/part-00004.jsonl", gzip(kLines));
  EXPECT_EQ(ingested({folder_ / "in"}),
            (Documents{"a", "b", "a", "b", "a", "b", "a", "b", "a", "b"}));
  EXPECT_THAT(report_.notes,
              ElementsAre(AllOf(HasSubstr("in/part-00000 and 2 others: taken for JSON lines by"),
                                HasSubstr("--format")),
                          HasSubstr("in/part-00004.jsonl: taken for gzip by"),
                          HasSubstr("in/part-00002: taken for zstd of JSON lines by")));
  EXPECT_EQ(ingested({write("x.bin", read_file(kCorpusGoldens / "documents.parquet"))}),
            ingested({kCorpusGoldens / "documents.parquet"}));
  // What is text stays text.
  for (const char* name : {"x.txt", "x.md", "x.html"}) {
    EXPECT_EQ(ingested({write(name, kLines)}), Documents{kLines}) << name;
  }
  for (const std::string text : {"{% if x %}\n{}\n", "{\n  \"a\": 1\n}\n", "{", "int x;\n{}\n"}) {
    EXPECT_EQ(ingested({write("code", text)}), Documents{text});
    EXPECT_THAT(report_.notes, ElementsAre());
  }
  EXPECT_THAT(error_of({write("other", "{\"body\": \"a\"}\n")}),
              AllOf(HasSubstr("has no key `text`"), HasSubstr("by its first bytes JSON lines"),
                    HasSubstr("--format names another")));
}

TEST_F(IngestNamedOtherwise, AByteOrderMarkIsNoText) {
  const std::string mark = "\xef\xbb\xbf";
  EXPECT_EQ(ingested({write("x.txt", mark + "a" + mark)}), Documents{"a" + mark});
  EXPECT_EQ(ingested({write("x.txt.gz", gzip(mark + "a"))}), Documents{"a"});
  EXPECT_EQ(ingested({write("x.csv", mark + "text\na\nb\n")}), both_);
  EXPECT_EQ(ingested({write("x.jsonl", mark + kLines)}), both_);
}

TEST_F(IngestNamedOtherwise, AFormatMayBeNamed) {
  EXPECT_EQ(ingested({write("x.txt", kLines)}, {.format = InputFormat::kJsonLines}), both_);
  EXPECT_EQ(ingested({write("x.jsonl", kLines)}, {.format = InputFormat::kText}),
            Documents{kLines});
  EXPECT_EQ(ingested({write("x.txt.gz", gzip("text\na\nb\n"))}, {.format = InputFormat::kCsv}),
            both_);
  EXPECT_EQ(ingested({write("x.tsv", "text\tid\na\t1\nb\t2\n")}, {.format = InputFormat::kCsv}),
            both_);
  EXPECT_THAT(error_of({write("x.jsonl", kLines)}, {.format = InputFormat::kParquet}),
              HasSubstr("begins as JSON does, not as Parquet: --format jsonl reads it"));
  for (const char* name : kFormatNames) EXPECT_EQ(name_of(format_named(name)), name);
}

TEST_F(IngestNamedOtherwise, JsonIsLinesEvenIfTheFirstOneIsBroken) {
  std::string lines = "{\"text\": \"broken\n";
  for (int i = 0; i < 50; ++i) lines += "{\"text\": \"a\"}\n";
  write("in/x.json", lines);
  write("in/y.txt", "text");
  EXPECT_EQ(ingested({folder_ / "in/x.json"}, {.skip_invalid_lines = true}).size(), 50u);
  EXPECT_EQ(report_.num_invalid_lines, 1);
  EXPECT_THAT(error_of({folder_ / "in"}),
              AllOf(HasSubstr("x.json:1: not JSON"), HasSubstr("--skip-invalid-lines passes")));
  EXPECT_EQ(ingested({write("z.json", "{\"a\": [\n{\"x\": 1}\n],\n\"text\": \"a\"}")}),
            Documents{"a"});
}

TEST_F(IngestNamedOtherwise, LongLinesCanBeSkipped) {
  const std::string line(5000, 'x');
  const IngestOptions options{.max_document_bytes = 1000, .skip_invalid_lines = true};
  for (const std::string& text : {line + "\n" + kLines, kLines + line,
                                  "{\"text\": \"a\"}\n" + line + "\n{\"text\": \"b\"}"}) {
    EXPECT_EQ(ingested({write("x.jsonl", text)}, options), both_);
    EXPECT_EQ(report_.num_invalid_lines, 1);
    EXPECT_THAT(report_.warnings, ElementsAre(HasSubstr("a line of more than 1000 bytes")));
  }
  // Longer than the buffer, with a line behind it.
  EXPECT_EQ(ingested({write("x.jsonl", std::string(3 << 20, 'x') + "\n" + kLines)}, options),
            both_);
}

TEST_F(IngestNamedOtherwise, NoInvalidLineWhereNoneIsAllowed) {
  const fs::path input = write("x.jsonl", kLines + "bad\n");
  IngestOptions options{.skip_invalid_lines = true};
  EXPECT_EQ(ingested({input}, options), both_);
  options.max_invalid_lines = 0;
  EXPECT_THAT(error_of({input}, options), HasSubstr("x.jsonl:3: not JSON"));
}

TEST_F(IngestNamedOtherwise, TextThatIsNotUtf8EndsItWhereThatIsAsked) {
  write("in/bad.txt", "caf\xe9 x");
  write("in/good.txt", "text");
  write("in/image", std::string("\x89PNG\0\0", 6));
  EXPECT_EQ(ingested({folder_ / "in"}), Documents{"text"});
  EXPECT_THAT(error_of({folder_ / "in"}, {.invalid_utf8 = InvalidUtf8::kFailAlways}),
              HasSubstr("bad.txt: not UTF-8"));
  fs::remove(folder_ / "in/bad.txt");
  EXPECT_EQ(ingested({folder_ / "in"}, {.invalid_utf8 = InvalidUtf8::kFailAlways}),
            Documents{"text"});
  EXPECT_THAT(error_of({write("x.jsonl", "{\"text\": \"caf\xe9\"}\n")}),
              AllOf(HasSubstr("x.jsonl:1: not UTF-8 near byte 13"), HasSubstr("--invalid-utf8"),
                    Not(HasSubstr("\xe9"))));
}

TEST_F(IngestNamedOtherwise, AFolderAndAFileInItAreTakenOnce) {
  const fs::path file = write("in/x.jsonl", kLines);
  EXPECT_EQ(ingested({folder_ / "in", file}), both_);
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("x.jsonl: named twice, itself or with")));
  EXPECT_EQ(ingested({folder_, folder_ / "in/../in"}, {.overwrite = true}), both_);
  EXPECT_EQ(ingested({file, file}), (Documents{"a", "b", "a", "b"}));
}

TEST_F(IngestNamedOtherwise, WindowsOfZstdAreNoDamage) {
  EXPECT_THAT(error_of({write("x.jsonl.zst", zstd(kLines, 29))}),
              AllOf(HasSubstr("a window of more than 128 MiB"), HasSubstr("--long=27"),
                    Not(HasSubstr("damaged"))));
}

// Folders name splits as well, and files may be copies by their names.
TEST_F(IngestNamedOtherwise, FoldersOfSplitsAndCopiesAreNamed) {
  write("splits/train/0.jsonl", R"({"text": "train"})");
  write("splits/valid/0.jsonl", R"({"text": "valid"})");
  ingested({folder_ / "splits"});
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("several splits")));
  write("copies/d.jsonl", R"({"text": "a"})");
  write("copies/d (1).jsonl", R"({"text": "a"})");
  write("copies/e.jsonl", R"({"text": "b"})");
  ingested({folder_ / "copies"});
  EXPECT_THAT(report_.notes, ElementsAre(AllOf(HasSubstr("d (1).jsonl and "),
                                               HasSubstr("d.jsonl: by their names they hold"))));
  ingested({folder_ / "copies/e.jsonl", folder_ / "copies/e.jsonl"});
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("e.jsonl: named twice: read twice")));
  ingested(
      {write("wiki_00", "<doc id=\"1\" title=\"A\">\nA\n</doc>\n<doc id=\"2\">\nB\n</doc>\n")});
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("wikiextractor --json")));
}

}  // namespace
}  // namespace skein
