#include "skein/prepare/ingest.h"

#include <set>

#include "skein/data/learn/stats.h"
#include "skein/prepare/work_folder.h"
#include "tests/data/ingest_testing.h"

namespace skein {
namespace {

TEST_F(Ingest, WalksFoldersInTheOrderOfPaths) {
  write("in/b.txt", "two");
  write("in/a/z.h", "one");
  write("in/c/x.jsonl", "{\"text\": \"three\"}\n\n{\"id\": 7, \"text\": \"four\"}");
  write("in/.hidden/y.txt", "no");
  write("in/.dot.txt", "no");
  write("in/empty.txt", "");
  write("in/binary.o", std::string("\0\1\2\xff", 4));
  EXPECT_EQ(ingested({folder_ / "in"}), (Documents{"one", "two", "three", "four"}));
  EXPECT_EQ(report_.num_files, 4);
  EXPECT_EQ(report_.num_documents, 4);
  EXPECT_EQ(report_.num_bytes, 15);
  EXPECT_EQ(report_.num_left_out, 1);
  EXPECT_TRUE(report_.first_empty.ends_with("in/empty.txt, record 1")) << report_.first_empty;
  EXPECT_EQ(report_.num_skipped_files, 1);
  ASSERT_EQ(report_.warnings.size(), 1u);
  EXPECT_NE(report_.warnings[0].find("binary.o: binary data"), std::string::npos);
}

TEST_F(Ingest, ReadsEveryFormatAlike) {
  const std::string lines = "{\"text\":\"äöü\\n\"}\n{\"text\":\"two\"}\r\n{\"text\":\"\"}\n";
  const Documents wanted{"äöü\n", "two"};
  EXPECT_EQ(ingested({write("a.jsonl", lines)}), wanted);
  EXPECT_EQ(ingested({write("a.jsonl.gz", gzip(lines))}), wanted);
  EXPECT_EQ(ingested({write("a.jsonl.zst", zstd(lines))}), wanted);
  // Several gzip members or zstd frames, one after another.
  const Documents twice{"äöü\n", "two", "äöü\n", "two"};
  EXPECT_EQ(ingested({write("b.jsonl.gz", gzip(lines) + gzip(lines))}), twice);
  EXPECT_EQ(ingested({write("b.jsonl.zst", zstd(lines) + zstd(lines))}), twice);

  const Documents golden = ingested({kCorpusGoldens / "datasets.arrow"});
  EXPECT_EQ(golden.size(), 4u);
  for (const char* name : {"feather.arrow", "feather_lz4.arrow", "documents.parquet"}) {
    EXPECT_EQ(ingested({kCorpusGoldens / name}), golden) << name;
  }
}

TEST_F(Ingest, LargeCompressedFilesAreStreamed) {
  std::string lines;
  Documents wanted;
  for (int i = 0; i < 3000; ++i) {
    wanted.push_back(fmt::format("{}", i) + std::string(static_cast<size_t>(i % 977), 'x'));
    lines += "{\"text\": \"" + wanted.back() + "\"}\n";
  }
  wanted.emplace_back(2 << 20, 'y');  // longer than every buffer
  lines += "{\"text\": \"" + wanted.back() + "\"}";
  EXPECT_EQ(ingested({write("a.jsonl.gz", gzip(lines))}), wanted);
  EXPECT_EQ(ingested({write("a.jsonl.zst", zstd(lines))}), wanted);
}

TEST_F(Ingest, BadLinesNameFileAndLine) {
  const auto error = [&](std::string_view line) {
    return error_of({write("a.jsonl", "{\"text\": \"good\"}\n" + std::string(line) + "\n")});
  };
  const auto expect = [&](std::string_view line, const char* part) {
    const std::string what = error(line);
    EXPECT_NE(what.find("a.jsonl:2: "), std::string::npos) << what;
    EXPECT_NE(what.find(part), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    EXPECT_LT(what.size(), 500u);
  };
  expect("{\"id\": 1, \"body\": \"x\"}", "has no key `text` (its keys: `id`, `body`)");
  expect("{}", "(its keys: none)");
  expect("{\"text\": 5}", "`text` is a number");
  expect("{\"text\": [\"a\"]}", "`text` is an array");
  expect("{\"meta\": {\"text\": \"inner\"}}", "has no key `text`");
  expect("[\"text\"]", "is an array: expected an object");
  expect("[{\"text\": \"x\"}]", "is an array: expected an object");
  expect("\"text\"", "is a string");
  expect("{\"text\": \"unfinished", "not JSON");
  expect("{\"text\": \"a\"} {\"text\": \"b\"}", "not JSON");
  expect("{\"text\": \"\xff\xfe\"}", "UTF-8");
  expect("{\"text\": \"\\ud800\"}", "not JSON");
  expect(std::string(100'000, '['), "not JSON");
  expect("{\"" + std::string(5000, 'k') + "\": 1}", "has no key `text`");
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(Ingest, InvalidLinesCanBeSkipped) {
  const fs::path input =
      write("a.jsonl", "{\"text\": \"good\"}\nbad\n{\"id\": 1}\n{\"text\": \"too\"}");
  EXPECT_EQ(ingested({input}, {.skip_invalid_lines = true}), (Documents{"good", "too"}));
  EXPECT_EQ(report_.num_invalid_lines, 2);
  EXPECT_EQ(report_.warnings.size(), 2u);
}

TEST_F(Ingest, OverlongLinesAreRefused) {
  const fs::path input =
      write("a.jsonl", "{\"text\": \"x\"}\n{\"text\": \"" + std::string(5000, 'x') + "\"}\n");
  EXPECT_NE(
      error_of({input}, {.max_document_bytes = 1000}).find("a.jsonl:2: a line of more than 1000"),
      std::string::npos);
  // A decompression bomb is stopped at the limit.
  const fs::path bomb = write("bomb.jsonl.gz", gzip(std::string(64 << 20, 'x')));
  EXPECT_NE(error_of({bomb}, {.max_document_bytes = 1 << 20}).find("bomb.jsonl.gz:1: "),
            std::string::npos);
}

TEST_F(Ingest, DamagedCompressionIsAnError) {
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += fmt::format("{{\"text\": \"document {}\"}}\n", i * 7919);
  for (const auto& [name, bytes] :
       {std::pair<std::string, std::string>("a.jsonl.gz", gzip(lines)),
        std::pair<std::string, std::string>("a.jsonl.zst", zstd(lines))}) {
    EXPECT_NE(error_of({write(name, bytes.substr(0, bytes.size() / 2))}).find("truncated"),
              std::string::npos)
        << name;
    EXPECT_NE(error_of({write(name, bytes.substr(0, bytes.size() - 1))}).find("truncated"),
              std::string::npos)
        << name;
    EXPECT_NE(error_of({write(name, "")}).find("truncated"), std::string::npos) << name;
    EXPECT_NE(error_of({write(name, "plain text")}).find("damaged"), std::string::npos) << name;
  }
  std::string flipped = gzip(lines);
  flipped[flipped.size() - 6] ^= 1;  // of the checksum
  EXPECT_NE(error_of({write("a.jsonl.gz", flipped)}).find("damaged gzip file"), std::string::npos);
  const fs::path wide = write("w.jsonl.zst", zstd(lines, 28));
  EXPECT_NE(error_of({wide}).find("a window of more than 128 MiB"), std::string::npos);
}

TEST_F(Ingest, SaysWhatIsWrongWithAnInput) {
  EXPECT_NE(error_of({}).find("nothing to ingest"), std::string::npos);
  EXPECT_NE(error_of({folder_ / "none"}).find("none: no such file or folder"), std::string::npos);
  EXPECT_NE(
      error_of({write("latin1.txt", "abc\ncaf\xe9 ole")}).find("latin1.txt: not UTF-8 near byte 7"),
      std::string::npos);
  EXPECT_NE(error_of({write("bad.parquet", "PAR1 not really PAR1")}).find("bad.parquet: "),
            std::string::npos);
  EXPECT_NE(error_of({write("bad.arrow", "ARROW1 not really")}).find("bad.arrow: "),
            std::string::npos);
  const fs::path empty = write("empty/only.txt", "");
  EXPECT_NE(error_of({empty}).find("no text in " + empty.string()), std::string::npos);
  const fs::path latin1 = write("all/latin1.txt", "caf\xe9 ole");
  EXPECT_NE(
      error_of({latin1}, {.invalid_utf8 = InvalidUtf8::kSkip}).find("1 that are not UTF-8 skipped"),
      std::string::npos);
  EXPECT_FALSE(fs::exists(work_folder_of(out())));
  const std::string parquet = read_file(kCorpusGoldens / "documents.parquet");
  for (size_t size = 0; size < parquet.size(); size += 97) {
    EXPECT_NE(error_of({write("cut.parquet", parquet.substr(0, size))}).find("cut.parquet: "),
              std::string::npos)
        << size;
  }
}

TEST_F(Ingest, AFailureLeavesTheOldCorpus) {
  ingested({write("a.txt", "old")});
  EXPECT_NE(error_of({write("b.txt", "new"), write("c.jsonl", "bad")}), "");
  EXPECT_EQ(documents(out()), Documents{"old"});
  int num_entries = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) num_entries += entry.exists();
  EXPECT_EQ(num_entries, 5);  // three inputs, the corpus and its sources
}

TEST_F(Ingest, DoesNotReadItsOwnOutput) {
  write("a.txt", "text");
  EXPECT_EQ(ingested({folder_}), Documents{"text"});
  EXPECT_EQ(ingested({folder_}), Documents{"text"});
}

TEST_F(Ingest, HoldsOutAShareOfTheDocuments) {
  std::string lines;
  for (int i = 0; i < 5000; ++i) lines += fmt::format("{{\"text\": \"document {}\"}}\n", i);
  const fs::path input = write("a.jsonl", lines);
  const IngestOptions options{.validation_out = folder_ / "val.arrow", .validation_fraction = 0.1};
  const Documents training = ingested({input}, options);
  const Documents held = documents(options.validation_out.path());
  EXPECT_EQ(report_.num_validation_documents, static_cast<int64_t>(held.size()));
  EXPECT_NEAR(static_cast<double>(held.size()), 500, 100);
  std::set<std::string> all(training.begin(), training.end());
  all.insert(held.begin(), held.end());
  EXPECT_EQ(all.size(), 5000u);
  EXPECT_EQ(training.size() + held.size(), 5000u);
  EXPECT_EQ(training.back(), "document 4999");
  const std::string before = read_file(out());
  ingested({input}, options);
  EXPECT_EQ(read_file(out()), before);
  EXPECT_EQ(documents(options.validation_out.path()), held);
}

TEST_F(Ingest, HoldsOutTheEndOfLargeAndOfFewDocuments) {
  std::string text;
  for (int i = 0; text.size() < (3u << 20); ++i) text += fmt::format("line {}\n", i);
  const IngestOptions options{.validation_out = folder_ / "val.arrow", .validation_fraction = 0.05};
  for (const std::string& document : {text, text.substr(0, 20'000), std::string("ab")}) {
    const Documents training = ingested({write("one.txt", document)}, options);
    const Documents held = documents(options.validation_out.path());
    ASSERT_EQ(held.size(), 1u);
    EXPECT_EQ(training.at(0) + held.at(0), document);
    const double wanted = std::max(1.0, 0.05 * static_cast<double>(document.size()));
    EXPECT_NEAR(static_cast<double>(held[0].size()), wanted, 20);
  }
  EXPECT_NE(error_of({folder_}, {.validation_out = out()}).find("would be written twice"),
            std::string::npos);
  EXPECT_NE(
      error_of({folder_}, {.validation_out = "v", .validation_fraction = 1.5}).find("fraction 1.5"),
      std::string::npos);
}

TEST_F(Ingest, TellsItsProgress) {
  for (int i = 0; i < 5; ++i) write(fmt::format("in/{}.txt", i), "text");
  std::vector<PiecesProgress> told;
  ingest({folder_ / "in"}, out(), {},
         [&](const PiecesProgress& progress) { told.push_back(progress); });
  ASSERT_GE(told.size(), 1u);
  EXPECT_EQ(told.back().num_files, 5);
  EXPECT_EQ(told.back().num_files_done, 5);
  EXPECT_EQ(told.back().num_documents, 5);
  EXPECT_EQ(told.back().num_bytes, 20);
  EXPECT_EQ(told.back().num_input_bytes_done, told.back().num_input_bytes);
}

TEST_F(Ingest, StatsDescribeTheCorpus) {
  std::string lines;
  for (int i = 1; i <= 100; ++i)
    lines += "{\"text\": \"" + std::string(static_cast<size_t>(i), 'a') + "\"}\n";
  ingested({write("a.jsonl", lines)});
  const Corpus corpus(out());
  const auto tokenizer =
      Tokenizer::load(fs::path(kSourceFolder) / "skein/data/tokenizer/testdata/models/llama");
  CorpusStats stats = corpus_stats(corpus, tokenizer.get());
  EXPECT_EQ(stats.num_bytes, 5050);
  EXPECT_EQ(stats.lengths.min, 1);
  EXPECT_EQ(stats.lengths.p10, 10);
  EXPECT_EQ(stats.lengths.p50, 50);
  EXPECT_EQ(stats.lengths.p99, 99);
  EXPECT_EQ(stats.lengths.max, 100);
  EXPECT_DOUBLE_EQ(stats.lengths.mean, 50.5);
  int64_t num_tokens = 0;
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < 100; ++i) tokenizer->encode(corpus.document(i).str(), ids);
  num_tokens = static_cast<int64_t>(ids.size());
  EXPECT_EQ(stats.tokens->num_tokens, num_tokens);
  EXPECT_FALSE(stats.tokens->is_estimate);
  EXPECT_EQ(to_json(stats)["documents"], 100);
  stats = corpus_stats(corpus, tokenizer.get(), 2000);
  EXPECT_TRUE(stats.tokens->is_estimate);
  EXPECT_LT(stats.tokens->sampled_bytes, 5050);
  EXPECT_NEAR(static_cast<double>(stats.tokens->num_tokens), static_cast<double>(num_tokens),
              static_cast<double>(num_tokens) / 5);
  EXPECT_NE(to_text(stats).find("estimated from"), std::string::npos);
}

}  // namespace
}  // namespace skein
