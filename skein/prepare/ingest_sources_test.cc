// Where documents came from, and that it is kept through several passes.
#include <gmock/gmock.h>

#include "skein/data/corpus/corpus_sources.h"
#include "skein/data/corpus/origins.h"
#include "skein/prepare/dedup/dedup.h"
#include "tests/data/ingest_testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class IngestSources : public Ingest {
 protected:
  // "name:record" of each document.
  Documents sources_in(const fs::path& corpus) {
    const std::optional<CorpusSources> sources = CorpusSources::beside(corpus);
    Documents found;
    for (int64_t i = 0; i < sources->num_documents(); ++i) {
      const SourceRecord source = sources->find(i);
      found.push_back(
          fmt::format("{}:{}", fs::path(source.path).filename().string(), source.record));
    }
    return found;
  }
};

TEST_F(IngestSources, AreKeptThroughFurtherPasses) {
  write("in/a.jsonl",
        "{\"text\": \"1\"}\n\n{\"text\": \"3\"}\n{\"text\": \"\"}\n{\"text\": \"5\"}");
  write("in/b.txt", "b");
  write("in/c.csv", "text\nx\ny\n");
  const Documents wanted{"a.jsonl:1", "a.jsonl:3", "a.jsonl:5", "b.txt:1", "c.csv:1", "c.csv:2"};
  ingested({folder_ / "in"});
  EXPECT_EQ(sources_in(out()), wanted);
  EXPECT_EQ(CorpusSources::beside(out())->num_runs(), 5);
  EXPECT_EQ(CorpusSources::beside(out())->num_sources(), 3);

  fs::create_directories(folder_ / "corpus");
  for (const char* name : {"corpus/all.arrow", "corpus/all.arrow.sources"}) {
    fs::copy_file(out() += fs::path(name).extension() == ".sources" ? ".sources" : "",
                  folder_ / name);
  }
  EXPECT_EQ(ingested({folder_ / "corpus"}).size(), 6u);
  EXPECT_EQ(sources_in(out()), wanted);
  EXPECT_THAT(report_.passed_over, testing::IsEmpty());
  EXPECT_EQ(ingested({folder_ / "corpus/all.arrow", folder_ / "corpus/all.arrow"}).size(), 12u);
  EXPECT_EQ(sources_in(out())[11], "c.csv:2");
}

TEST_F(IngestSources, BothHalvesOfACutDocumentHaveItsSource) {
  const IngestOptions options{.validation_out = folder_ / "val.arrow"};
  ingested({write("a.txt", std::string(3 << 20, 'x'))}, options);
  EXPECT_THAT(sources_in(out()), ElementsAre("a.txt:1"));
  EXPECT_THAT(sources_in(options.validation_out.path()), ElementsAre("a.txt:1"));
  ingested({write("a.txt", "ab")}, options);
  EXPECT_THAT(sources_in(out()), ElementsAre("a.txt:1"));
  EXPECT_THAT(sources_in(options.validation_out.path()), ElementsAre("a.txt:1"));
}

TEST_F(IngestSources, OfAnotherCorpusAreRefused) {
  ingested({write("few.jsonl", "{\"text\": \"1\"}\n{\"text\": \"2\"}")});
  const std::string of_few = read_file(sources_of(out()));
  const std::string same_count = "{\"text\": \"1\"}\n{\"text\": \"22\"}";
  for (const std::string& lines :
       {same_count, std::string("{\"text\": \"1\"}"), "{\"text\": \"x\"}\n" + same_count}) {
    const fs::path corpus = folder_ / "other.arrow";
    ingest({write("other.jsonl", lines)}, corpus, {.overwrite = true});
    write_file_atomic(sources_of(corpus), of_few);
    const Corpus opened(corpus);
    const auto refused = AllOf(HasSubstr("other.arrow.sources: tells of 2 documents, of 2 bytes"),
                               HasSubstr("other.arrow has "), HasSubstr("remove it, or make"));
    EXPECT_THAT(test::error_of([&] { CorpusOrigins(opened).find(0); }), refused);
    EXPECT_THAT(error_of({corpus}), refused);
    EXPECT_THAT(test::error_of([&] { dedup({corpus}, out(), {.overwrite = true}); }), refused);
  }
}

TEST_F(IngestSources, NamesNeedNotBeUtf8) {
  const fs::path input = write("caf\xe9 \u00e9.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}");
  for (const fs::path& each : {input, out()}) {
    const fs::path again = folder_ / "again.arrow";
    ingest({each}, again, {.overwrite = true});
    EXPECT_THAT(sources_in(again),
                ElementsAre("caf\\xe9 \u00e9.jsonl:1", "caf\\xe9 \u00e9.jsonl:2"));
    EXPECT_TRUE(ingest({each}, again, {}).was_finished);
    fs::rename(again, out());
    fs::rename(sources_of(again), sources_of(out()));
  }
  dedup({out()}, folder_ / "unique.arrow", {});
  EXPECT_THAT(sources_in(folder_ / "unique.arrow"), testing::SizeIs(2));
}

TEST_F(IngestSources, ADamagedFileIsRefused) {
  ingested({write("a.jsonl", "{\"text\": \"1\"}\n{\"text\": \"2\"}")});
  const fs::path path = sources_of(out());
  EXPECT_THAT(test::error_of([&] { CorpusSources(path).find(2); }), HasSubstr("no document 2"));
  const std::string whole = read_file(path);
  for (size_t size = 0; size + 8 < whole.size(); size += 8) {
    write_file_atomic(path, whole.substr(0, size));
    EXPECT_THAT(test::error_of([&] { CorpusSources(path).find(0); }), HasSubstr(".sources: "))
        << size;
  }
  // Any byte may be another: it is an error, or some answer.
  for (size_t i = 0; i < whole.size(); i += 7) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x81);
    write_file_atomic(path, damaged);
    test::error_of([&] { CorpusSources(path).find(1); });
  }
}

}  // namespace
}  // namespace skein
