// Archives of texts: their members are read as the files of a folder are.
#include <gmock/gmock.h>

#include "skein/data/corpus/corpus_sources.h"
#include "tests/data/ingest_testing.h"
#include "tests/data/packed_testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

const std::string kEnd(1024, '\0');

class IngestArchive : public Ingest {
 protected:
  // "x.tar/a.txt:1" of each document.
  Documents origins() {
    const std::optional<CorpusSources> sources = CorpusSources::beside(out());
    Documents found;
    for (int64_t i = 0; i < sources->num_documents(); ++i) {
      const SourceRecord source = sources->find(i);
      found.push_back(fmt::format(
          "{}:{}", fs::path(source.path).lexically_relative(folder_).string(), source.record));
    }
    return found;
  }

  const std::string mixed_ = tar({{"./z.txt", "first"},
                                  {"b.jsonl", "{\"text\": \"second\"}\n\n{\"text\": \"third\"}\n"},
                                  {"c/d.csv.gz", gzip("text\nfourth\n")}});
  const Documents texts_{"first", "second", "third", "fourth"};
};

TEST_F(IngestArchive, MembersAreReadInTheirOrder) {
  for (const auto& [name, bytes] : {std::pair<std::string, std::string>("x.tar", mixed_),
                                    std::pair<std::string, std::string>("x.tar.gz", gzip(mixed_)),
                                    std::pair<std::string, std::string>("x.tgz", gzip(mixed_)),
                                    std::pair<std::string, std::string>("x.tar.zst", zstd(mixed_)),
                                    std::pair<std::string, std::string>("x.tar.bz2", bzip2(mixed_)),
                                    std::pair<std::string, std::string>("x.tbz2", bzip2(mixed_)),
                                    std::pair<std::string, std::string>("x.tar.xz", xz(mixed_)),
                                    std::pair<std::string, std::string>("x.txz", xz(mixed_)),
                                    std::pair<std::string, std::string>("no_name", gzip(mixed_))}) {
    EXPECT_EQ(ingested({write(name, bytes)}), texts_) << name;
    EXPECT_EQ(report_.num_files, 3) << name;
    EXPECT_THAT(origins(), ElementsAre(name + "/z.txt:1", name + "/b.jsonl:1", name + "/b.jsonl:3",
                                       name + "/c/d.csv.gz:1"));
  }
  EXPECT_THAT(report_.notes, Contains(HasSubstr("taken for gzip of a tar archive by")));
  EXPECT_THAT(error_of({write("x.txt", mixed_)}), HasSubstr("a tar archive by its first bytes"));
}

TEST_F(IngestArchive, WhatHoldsNoTextIsPassedOverAsInAFolder) {
  const std::string archive = tar({{"a.json", "{\"id\": 1}"},
                                   {"a.txt", "text"},
                                   {"a.png", "\x89PNG\r\n\x1a\n"},
                                   {"a.cls", "7"},
                                   {"._a.txt", "x"},
                                   {"__MACOSX/b", "x"},
                                   {"../up.txt", "x"},
                                   {"in/../../up.txt", "x"}});
  EXPECT_EQ(ingested({write("x.tar", archive)}), Documents{"text"});
  EXPECT_EQ(report_.num_skipped_files, 3);
  EXPECT_THAT(report_.warnings, ElementsAre(HasSubstr("x.tar/a.json:1: has no key `text`"),
                                            HasSubstr("x.tar/a.png: a PNG image"),
                                            HasSubstr("x.tar/a.cls: a number")));
  EXPECT_THAT(report_.notes, UnorderedElementsAre(
                                 HasSubstr("x.tar/._a.txt: left out of the archive: a hidden"),
                                 HasSubstr("x.tar/__MACOSX/b: left out of the archive: what an op"),
                                 HasSubstr("up.txt and 1 other: left out of the archive: its name "
                                           "leads out")));
  // A line that is broken ends it, as in a folder.
  EXPECT_THAT(error_of({write("x.tar", tar({{"a.jsonl", "{\"text\": \"a\"}\n{\"txet\": 1}\n"}}))}),
              AllOf(HasSubstr("x.tar/a.jsonl:2: has no key `text`")));
  EXPECT_THAT(error_of({write("x.tar", tar({{"a.png", "\x89PNG\r\n\x1a\n"}}))}),
              AllOf(HasSubstr("no text in"), HasSubstr("a PNG image")));
}

TEST_F(IngestArchive, NamesOfEveryFormatAndNoLinks) {
  const std::string a(150, 'a'), b(120, 'b');
  std::string prefixed = tar_entry("end.txt", "prefixed");
  const std::string archive =
      tar_entry("././@LongLink", a + ".txt" + '\0', 'L') + tar_entry("cut", "gnu") +
      tar_entry("x", pax_record("mtime", "1.5") + pax_record("path", b + "/ü.txt"), 'x') +
      tar_entry("cut", "pax") + tar_entry("g", pax_record("comment", "all"), 'g') +
      tar_entry("folder/", "", '5') + tar_entry("old_folder/", "") +
      tar_entry("link.txt", "", '2', "/etc/passwd") + tar_entry("hard.txt", "", '1', "end.txt") +
      tar_entry("device", "", '3') + prefixed + tar_entry("old.txt", "v7", '\0') + kEnd;
  EXPECT_EQ(ingested({write("x.tar", archive)}), (Documents{"gnu", "pax", "prefixed", "v7"}));
  EXPECT_THAT(origins(), ElementsAre("x.tar/" + a + ".txt:1", "x.tar/" + b + "/ü.txt:1",
                                     "x.tar/end.txt:1", "x.tar/old.txt:1"));
  EXPECT_THAT(report_.notes,
              UnorderedElementsAre(HasSubstr("x.tar/link.txt: left out of the archive: a symbolic"),
                                   HasSubstr("x.tar/hard.txt: left out of the archive: a hard"),
                                   HasSubstr("x.tar/device: left out of the archive: a device")));
  // One archive behind another, and sizes as GNU writes large ones.
  EXPECT_EQ(ingested({write("two.tar", tar({{"a.txt", "1"}}) + tar({{"a.txt", "2"}}))}),
            (Documents{"1", "2"}));
}

TEST_F(IngestArchive, ArchivesAndTablesInArchives) {
  const std::string inner = tar({{"0001.txt", "inner"}});  // as OpenWebText has them
  EXPECT_EQ(ingested({write("x.tar.xz", xz(tar({{"w/subset00-1_data.xz", xz(inner)}})))}),
            Documents{"inner"});
  EXPECT_THAT(origins(), ElementsAre("x.tar.xz/w/subset00-1_data.xz/0001.txt:1"));
  const Documents golden = ingested({kCorpusGoldens / "datasets.arrow"});
  Documents both = golden;
  both.insert(both.end(), golden.begin(), golden.end());
  EXPECT_EQ(
      ingested({write("y.tar", tar({{"a.parquet", read_file(kCorpusGoldens / "documents.parquet")},
                                    {"a.arrow", read_file(kCorpusGoldens / "datasets.arrow")}}))}),
      both);
  std::string deep = inner;
  for (int i = 0; i < 5; ++i) deep = tar({{"deeper.tar", deep}});
  EXPECT_THAT(error_of({write("z.tar", deep)}), HasSubstr("an archive within 4 others"));
}

TEST_F(IngestArchive, DamageIsNamed) {
  const auto error = [&](const std::string& bytes) { return error_of({write("x.tar", bytes)}); };
  EXPECT_THAT(error(mixed_.substr(0, mixed_.size() - 1024)),
              HasSubstr("x.tar: damaged tar archive, near byte 3072: it ends without the two"));
  EXPECT_THAT(error(mixed_.substr(0, 514)), HasSubstr("a member does not end (truncated?)"));
  EXPECT_THAT(error(mixed_.substr(0, 1300)), HasSubstr("its last block is not whole"));
  std::string flipped = mixed_;
  flipped[1024 + 3] = 'X';
  EXPECT_THAT(error(flipped), HasSubstr("near byte 1536: expected the header of a member"));
  EXPECT_THAT(error("plain text, and no archive"), HasSubstr("x.tar: damaged tar archive"));
  EXPECT_THAT(error(tar_entry("a", "x", 'S') + kEnd), HasSubstr("a sparse file"));
  EXPECT_THAT(error(tar_entry("x", "no records", 'x') + kEnd), HasSubstr("records of pax"));
  EXPECT_THAT(error_of({write("x.tar.gz", gzip(mixed_).substr(0, 100))}), HasSubstr("truncated?"));
}

// A member gives less than the bound, all of them together more.
TEST_F(IngestArchive, ABombInSeveralMembersIsOne) {
  const std::string inner = zstd(tar({{".hidden", std::string(size_t{400} << 20, '\0')}}));
  EXPECT_THAT(error_of({write("x.tar", tar({{"a.txt", "text"},
                                            {"1.tar.zst", inner},
                                            {"2.tar.zst", inner},
                                            {"3.tar.zst", inner}}))}),
              AllOf(HasSubstr("x.tar/3.tar.zst: its first "), HasSubstr("a compression bomb?")));
}

// Their names take no more than 64 MiB of memory: those behind have the archive for an origin.
TEST_F(IngestArchive, VeryLongNamesAreNotAllKept) {
  std::string archive;
  for (int i = 0; i < 66; ++i) {
    const std::string name = fmt::format("{:02}", i) + std::string((size_t{1} << 20) - 64, 'x');
    archive += tar_entry("x", pax_record("path", name + ".txt"), 'x') + tar_entry("cut", "text");
  }
  EXPECT_EQ(ingested({write("x.tar", archive + kEnd)}).size(), 66u);
  const std::optional<CorpusSources> sources = CorpusSources::beside(out());
  EXPECT_GT(sources->find(0).path.size(), 1'000'000u);
  EXPECT_EQ(sources->find(65).path, (folder_ / "x.tar").string());
  EXPECT_EQ(sources->find(65).record, 66);
}

TEST_F(IngestArchive, AnIngestionGoesOnBehindWholeArchives) {
  const fs::path first = write("in/a.tar", tar({{"a.txt", std::string(40 << 20, 'x')}}));
  write("in/b.tar", tar({{"b.jsonl", "broken\n"}}));
  EXPECT_THAT(error_of({folder_ / "in"}), HasSubstr("1 of 2 pieces are finished"));
  write("in/b.tar", tar({{"b.jsonl", "{\"text\": \"b\"}\n"}}));
  EXPECT_EQ(ingested({folder_ / "in"}).size(), 2u);
  EXPECT_THAT(report_.restart, ElementsAre(HasSubstr("1 of 2 pieces were finished before")));
}

}  // namespace
}  // namespace skein
