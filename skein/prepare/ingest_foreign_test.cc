// Files that are no document as they stand: caches and pointers of other programs, web archives,
// several texts in a file.
#include <gmock/gmock.h>

#include "tests/data/ingest_testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kPointer =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 26982594\n";

class IngestForeign : public Ingest {
 protected:
  // A data set in the cache of the Hub, with a snapshot for each revision.
  fs::path hub(const std::vector<std::string>& revisions, const std::string& main) {
    fs::path repository = folder_ / "hub/datasets--org--web";
    write("hub/datasets--org--web/blobs/5e3f", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n");
    write("hub/datasets--org--web/blobs/77aa", "# Web\n");
    write("hub/datasets--org--web/refs/main", main);
    for (const std::string& revision : revisions) {
      const fs::path snapshot = repository / "snapshots" / revision;
      fs::create_directories(snapshot / "data");
      fs::create_symlink("../../../blobs/5e3f", snapshot / "data/train.jsonl");
      fs::create_symlink("../../blobs/77aa", snapshot / "README.md");
    }
    return repository;
  }
  static std::string record(const std::string& type, const std::string& content) {
    return fmt::format("WARC/1.0\r\nWARC-Type: {}\r\nContent-Length: {}\r\n\r\n{}\r\n\r\n", type,
                       content.size(), content);
  }
};

TEST_F(IngestForeign, OfTheHubsCacheTheSnapshotIsRead) {
  const fs::path repository = hub({"abc"}, "abc");
  const Documents both = {"one", "two"};
  EXPECT_EQ(ingested({folder_ / "hub"}), both);
  EXPECT_THAT(report_.passed_over,
              ElementsAre(HasSubstr("a cache of the Hugging Face Hub: its snapshot abc is read"),
                          HasSubstr("README.md: the card of a repository")));
  EXPECT_EQ(ingested({repository / "snapshots/abc"}), both);
  // A blob beside the link to it is the same file.
  EXPECT_EQ(ingested({repository / "snapshots/abc/data", repository / "blobs/5e3f"}), both);
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("the same file as")));
}

TEST_F(IngestForeign, OfSeveralSnapshotsTheNewestIsRead) {
  const fs::path repository = hub({"abc", "def"}, "def");
  EXPECT_EQ(ingested({folder_ / "hub"}), (Documents{"one", "two"}));
  EXPECT_THAT(report_.passed_over.front(),
              AllOf(HasSubstr("its snapshot def is read"), HasSubstr("not the others, not blobs")));
  write("hub/datasets--org--web/refs/main", "gone");
  EXPECT_THAT(error_of({folder_ / "hub"}),
              AllOf(HasSubstr("with 2 snapshots: expected one of them, such as"),
                    HasSubstr("snapshots/abc")));
}

TEST_F(IngestForeign, AFileOfSeveralNamesIsTakenOnce) {
  write("in/a.txt", "text");
  fs::create_hard_link(folder_ / "in/a.txt", folder_ / "in/b.txt");
  fs::create_symlink("a.txt", folder_ / "in/c.txt");
  EXPECT_EQ(ingested({folder_ / "in"}), Documents{"text"});
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("in/b.txt: the same file as"),
                                         HasSubstr("in/c.txt: the same file as")));
  for (const char* name : {"d", "e", "f"}) {
    fs::create_symlink("a.txt", folder_ / "in" / fmt::format("{}.txt", name));
  }
  EXPECT_EQ(ingested({folder_ / "in"}), Documents{"text"});
  EXPECT_THAT(report_.notes,
              ElementsAre(HasSubstr("in/b.txt"), HasSubstr("in/c.txt"), HasSubstr("in/d.txt"),
                          HasSubstr("2 more files are other names of files")));
  // The name that says what it is counts.
  write("tables/data", "text\none\ntwo\n");
  fs::create_symlink("data", folder_ / "tables/data.csv");
  EXPECT_EQ(ingested({folder_ / "tables"}), (Documents{"one", "two"}));
  // Who names both wants both.
  EXPECT_EQ(ingested({folder_ / "in/a.txt", folder_ / "in/b.txt"}), (Documents{"text", "text"}));
}

TEST_F(IngestForeign, APointerOfGitLfsIsNoDocument) {
  for (const char* name : {"x.txt", "x.jsonl", "x.json", "x.parquet", "x.arrow", "x.csv", "x"}) {
    EXPECT_THAT(
        error_of({write(name, kPointer)}),
        AllOf(HasSubstr(name), HasSubstr("a Git LFS pointer, not the file: `git lfs pull`")));
    write(std::string("in/") + name, kPointer);
  }
  write("in/real.txt", "text about version https://git-lfs.github.com/spec/v1");
  EXPECT_EQ(ingested({folder_ / "in"}).size(), 1u);
  EXPECT_EQ(report_.passed_over.size(), 7u);
}

TEST_F(IngestForeign, TextsOfAWebArchiveAreItsConversions) {
  const std::string wet = record("warcinfo", "Software-Info: x\r\n") +
                          record("conversion", "First page text.\nMore.") +
                          record("conversion", "Zweite Seite.");
  const Documents texts = {"First page text.\nMore.", "Zweite Seite."};
  EXPECT_EQ(ingested({write("CC-MAIN-1.warc.wet.gz", gzip(wet))}), texts);
  EXPECT_EQ(ingested({write("CC-MAIN-1.warc.wet", wet)}), texts);
  EXPECT_EQ(ingested({write("x.wet.zst", zstd(wet))}), texts);
  EXPECT_EQ(ingested({write("part-0", wet)}), texts);
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("taken for WARC by the first bytes")));
  // Each record a member of the gzip file, as Common Crawl has them, and longer than a read.
  const std::string large(700'000, 'a');
  EXPECT_EQ(ingested({write("y.wet.gz", gzip(wet) + gzip(record("conversion", large)))}),
            (Documents{texts[0], texts[1], large}));
  EXPECT_THAT(error_of({write("cut.wet", wet.substr(0, wet.size() - 10))}),
              AllOf(HasSubstr("cut.wet, record 3: "), HasSubstr("truncated?")));
  EXPECT_THAT(error_of({write("raw.warc", record("response", "HTTP/1.1 200 OK\r\n"))}),
              AllOf(HasSubstr("1 records (the first is `response`) and none of text"),
                    HasSubstr(".warc.wet.gz")));
  EXPECT_THAT(error_of({write("bad.wet", "WARC/1.0\r\nContent-Length: many\r\n\r\n")}),
              HasSubstr("its Content-Length is no number"));
  EXPECT_THAT(error_of({write("bad.wet", "WARC/1.0\r\nContent-Length: 12x\r\n\r\n")}),
              HasSubstr("its Content-Length is no number"));
  EXPECT_THAT(error_of({write("none.wet", "WARC/1.0\r\nWARC-Type: conversion\r\n\r\n")}),
              HasSubstr("no Content-Length"));
}

TEST_F(IngestForeign, ASeparatorStandsBetweenTexts) {
  const IngestOptions separated = {.document_separator = "<|endoftext|>"};
  const Documents three = {"A dog ran.", "A cat sat.\nIt slept.", "Tom liked balls."};
  const std::string text =
      "A dog ran.\n<|endoftext|>\n\nA cat sat.\nIt slept.\r\n<|endoftext|>\r\n<|endoftext|>"
      "Tom liked balls.\n<|endoftext|>\n";
  EXPECT_EQ(ingested({write("stories.txt", text)}, separated), three);
  EXPECT_EQ(ingested({write("stories.txt.gz", gzip(text))}, separated), three);
  EXPECT_EQ(ingested({write("no_name", text)}, separated), three);
  EXPECT_EQ(ingested({write("one.txt", "no separator\n")}, separated), Documents{"no separator"});
  // Wherever a read ends.
  for (const int64_t before : {262'130, 262'137, 262'143, 262'144, 262'145}) {
    const std::string first(before, 'a'), second(300'000, 'b');
    EXPECT_EQ(ingested({write("large.txt", first + "<|endoftext|>" + second)}, separated),
              (Documents{first, second}));
  }
  EXPECT_THAT(error_of({write("bad.txt", "fine<|endoftext|>caf\xe9")}, separated),
              HasSubstr("bad.txt, document 2: not UTF-8"));
  // Without the option it is one text, and a note says so.
  EXPECT_EQ(ingested({write("stories.txt", text)}), Documents{text});
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("--document-separator '<|endoftext|>'")));
}

TEST_F(IngestForeign, EachLineIsADocumentWhereThatIsAsked) {
  const IngestOptions lines = {.format = InputFormat::kLines};
  EXPECT_EQ(ingested({write("oscar.txt", "first\n\n second \r\nthird")}, lines),
            (Documents{"first", " second ", "third"}));
}

TEST_F(IngestForeign, JsonOfOtherFormsIsReadOrNamed) {
  const std::string array = "[{\"text\": \"a\"},\n {\"text\": \"b\"}]\n";
  EXPECT_EQ(ingested({write("array.jsonl", array)}), (Documents{"a", "b"}));
  const std::string two = "{\"text\": \"a\"}{\"text\": \"b\"}\n";
  EXPECT_THAT(error_of({write("two.jsonl", two)}),
              AllOf(HasSubstr("several objects on a line; --format json reads them"),
                    Not(HasSubstr("--skip-invalid-lines"))));
  EXPECT_EQ(ingested({write("two.jsonl", two)}, {.format = InputFormat::kJson}),
            (Documents{"a", "b"}));
  EXPECT_THAT(error_of({write("comma.jsonl", "{\"text\": \"a\"},\n")}),
              AllOf(Not(HasSubstr("--format json")), HasSubstr("--skip-invalid-lines")));
  const std::string half = "{\"text\": \"broken \\ud83d emoji\"}\n";
  EXPECT_THAT(error_of({write("half.jsonl", half)}),
              AllOf(HasSubstr("--invalid-utf8 replace"), Not(HasSubstr("--skip-invalid-lines"))));
  // Passing over lines is an advice for some among others, not for a file of another kind.
  EXPECT_THAT(error_of({write("chat.jsonl", "{\"messages\": []}\n")}),
              AllOf(HasSubstr("its keys: `messages`"), Not(HasSubstr("--skip-invalid-lines"))));
  EXPECT_THAT(error_of({write("some.jsonl", "{\"text\": \"a\"}\nbroken\n")}),
              HasSubstr("--skip-invalid-lines passes over such lines"));
}

}  // namespace
}  // namespace skein
