// Compressed files of every kind that is read, and what is said of damaged ones and of others.
#include <gmock/gmock.h>

#include "tests/data/ingest_testing.h"
#include "tests/data/packed_testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kLines = "{\"text\": \"a\"}\n{\"text\": \"b\"}\n";

class IngestPacked : public Ingest {
 protected:
  const Documents both_{"a", "b"};
};

TEST_F(IngestPacked, Bzip2AndXzAreReadAsGzipIs) {
  EXPECT_EQ(ingested({write("x.jsonl.bz2", bzip2(kLines))}), both_);
  EXPECT_EQ(ingested({write("x.jsonl.xz", xz(kLines))}), both_);
  EXPECT_EQ(ingested({write("x.txt.bz2", bzip2("bz2 one"))}), Documents{"bz2 one"});
  EXPECT_EQ(ingested({write("x.txt.xz", xz("xz one"))}), Documents{"xz one"});
  EXPECT_EQ(ingested({write("x.jsonl.lz4", packed(kLines, arrow::Compression::LZ4_FRAME))}), both_);
  EXPECT_EQ(ingested({write("x.jsonl.br", packed(kLines, arrow::Compression::BROTLI))}), both_);
  // By the first bytes.
  EXPECT_EQ(ingested({write("dump", bzip2(kLines))}), both_);
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("taken for bzip2 of JSON lines")));
  EXPECT_EQ(ingested({write("x.jsonl", xz(kLines))}), both_);
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("taken for xz by the first bytes")));
  EXPECT_EQ(ingested({write("x.txt", gzip("text"))}), Documents{"text"});
  EXPECT_THAT(report_.notes, ElementsAre(HasSubstr("taken for gzip by the first bytes")));
  // Text may begin with the same letters.
  EXPECT_EQ(ingested({write("y", "BZh is a mark")}), Documents{"BZh is a mark"});
}

TEST_F(IngestPacked, StreamsOneAfterAnotherAreOne) {
  const std::string first = "{\"text\": \"a\"}\n", second = "{\"text\": \"b\"}\n";
  EXPECT_EQ(ingested({write("x.jsonl.bz2", bzip2(first) + bzip2(second))}), both_);
  EXPECT_EQ(ingested({write("x.jsonl.xz", xz(first) + xz(second))}), both_);
  EXPECT_EQ(ingested({write("x.jsonl.xz", xz(first) + std::string(8, '\0') + xz(second))}), both_);
  const auto lz4 = arrow::Compression::LZ4_FRAME;
  EXPECT_EQ(ingested({write("x.jsonl.lz4", packed(first, lz4) + packed(second, lz4))}), both_);
  // Longer than every buffer.
  const std::string large(3 << 20, 'x');
  EXPECT_EQ(ingested({write("x.txt.bz2", bzip2(large) + bzip2("y"))}), Documents{large + "y"});
  EXPECT_EQ(ingested({write("x.txt.xz", xz(large) + xz("y"))}), Documents{large + "y"});
}

TEST_F(IngestPacked, DamageIsNamed) {
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += fmt::format("{{\"text\": \"document {}\"}}\n", i * 7919);
  for (const auto& [name, bytes] :
       {std::pair<std::string, std::string>("x.jsonl.bz2", bzip2(lines)),
        std::pair<std::string, std::string>("x.jsonl.xz", xz(lines)),
        std::pair<std::string, std::string>("x.jsonl.lz4",
                                            packed(lines, arrow::Compression::LZ4_FRAME)),
        std::pair<std::string, std::string>("x.jsonl.br",
                                            packed(lines, arrow::Compression::BROTLI))}) {
    for (const size_t size : {bytes.size() / 2, bytes.size() - 1, size_t{0}}) {
      EXPECT_THAT(error_of({write(name, bytes.substr(0, size))}),
                  AllOf(HasSubstr(name), HasSubstr("ends early (truncated?)")))
          << size;
    }
    if (name == "x.jsonl.br") continue;  // whatever is behind it may be a part
    EXPECT_THAT(error_of({write(name, bytes + "what is behind it")}),
                HasSubstr(name + ": damaged "));
  }
  std::string flipped = xz(lines);  // has a sum of what it holds
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 0x10);
  EXPECT_THAT(error_of({write("x.txt.xz", flipped)}), HasSubstr("x.txt.xz: damaged xz file"));
}

TEST_F(IngestPacked, WhatWasDecompressedBeforeKeepsNoName) {
  EXPECT_THAT(error_of({write("x.jsonl.gz", kLines)}),
              AllOf(HasSubstr("begins as plain text does"), HasSubstr("x.jsonl.gz "),
                    HasSubstr("x.jsonl` gives it the right name")));
  EXPECT_THAT(error_of({write("x.csv.bz2", "text\na\n")}), HasSubstr("begins as plain text does"));
}

TEST_F(IngestPacked, ADictionaryOfXzTakesABoundedMemory) {
  EXPECT_EQ(ingested({write("x.jsonl.xz", with_dictionary(xz(kLines), 28))}), both_);
  EXPECT_THAT(error_of({write("x.jsonl.xz", with_dictionary(xz(kLines), 36))}),
              AllOf(HasSubstr("MiB of memory: expected at most 160"), HasSubstr("`xz -dc ")));
}

TEST_F(IngestPacked, OthersAreNamedWithWhatUnpacksThem) {
  for (const auto& [name, command] :
       {std::pair("x.zip", "`unzip -d x /"), std::pair("x.7z", "`7z x "),
        std::pair("x.rar", "`unrar x "), std::pair("x.txt.Z", "`uncompress "),
        std::pair("x.parquet.gz", "`gzip -d "), std::pair("x.arrow.xz", "`xz -d ")}) {
    EXPECT_THAT(error_of({write(name, "x")}), AllOf(HasSubstr(name), HasSubstr(command)));
  }
  EXPECT_THAT(error_of({write("docx", "PK\x03\x04\x14")}), HasSubstr("`unzip -d docx.texts /"));
}

// As they stand, in a shell.
TEST_F(IngestPacked, CommandsAreMeantForTheShell) {
  EXPECT_THAT(error_of({write("my texts.zip", "x")}),
              HasSubstr(fmt::format("`unzip -d 'my texts' '{}/my texts.zip'`", folder_.string())));
  EXPECT_THAT(error_of({write("a wiki.xml.bz2", bzip2("<mediawiki>\n<page>"))}),
              HasSubstr(fmt::format("`pipx run wikiextractor --json -o TEXTS '{}/a wiki.xml.bz2'`",
                                    folder_.string())));
  EXPECT_THAT(error_of({write("a b.jsonl.gz", kLines)}),
              HasSubstr(fmt::format("`mv '{0}/a b.jsonl.gz' '{0}/a b.jsonl'`", folder_.string())));
  EXPECT_EQ(command_on("unzip -d {1} {0}", "s3://texts/a/b c.zip"),
            "aws s3 cp 's3://texts/a/b c.zip' . && unzip -d 'b c' 'b c.zip'");
  EXPECT_THAT(error_of({write("it's.csv", "a\tb\n1\t2\n")}), HasSubstr("it'\\''s.csv'"));
}

}  // namespace
}  // namespace skein
