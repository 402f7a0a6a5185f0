// A corpus in an object of a store, whose place a reader takes that counts what it is asked for: it
// is the corpus of the same bytes in a file.
#include <arrow/array/builder_binary.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/compression.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>

#include "skein/base/error.h"
#include "skein/data/corpus/corpus.h"
#include "skein/data/corpus/corpus_writer.h"
#include "skein/data/lanes/corpus_fingerprint.h"
#include "skein/data/lanes/lane_testing.h"
#include "skein/data/lanes/packer.h"
#include "tests/error_of.h"
#include "tests/places.h"

namespace skein {
namespace {

using test::error_of;
using testing::HasSubstr;

constexpr int64_t kPage = ObjectCache::kPageBytes;
const fs::path kGoldens = fs::path(kSourceFolder) / "skein/data/corpus/testdata";

struct Requests {
  std::atomic<int64_t> count = 0, bytes = 0;
};

class FileReader : public RangeReader {
 public:
  FileReader(const fs::path& path, Requests& requests) : file_(path), requests_(requests) {}
  std::string name() const override { return "s3://texts/" + file_.path().filename().string(); }
  int64_t num_bytes() const override { return static_cast<int64_t>(file_.bytes().size()); }
  void read(int64_t begin, std::span<char> out) override {
    ++requests_.count;
    requests_.bytes += static_cast<int64_t>(out.size());
    std::memcpy(out.data(), file_.bytes().data() + begin, out.size());
  }

 private:
  MappedFile file_;
  Requests& requests_;
};

// Texts of very different lengths, the longer ones towards the end.
fs::path made_corpus(const std::string& name, int num_documents, double longer) {
  const fs::path path = fs::path(testing::TempDir()) / fmt::format("{}-{}.arrow", name, ::getpid());
  std::mt19937_64 random(5);
  CorpusWriter writer(path);
  for (int i = 0; i < num_documents; ++i) {
    const double scale = 60 + longer * i / num_documents;
    const auto bytes = static_cast<size_t>(
        random() % 9 == 0 ? 0 : scale * static_cast<double>(random() % 1000) / 300);
    writer.append(std::string(bytes, static_cast<char>('a' + i % 26)));
  }
  writer.commit();
  return path;
}

Corpus object_corpus(const fs::path& path, Requests& requests, int64_t max_bytes = 64 * kPage) {
  return Corpus::from_object(std::make_unique<FileReader>(path, requests),
                             std::make_shared<ObjectCache>(max_bytes));
}

TEST(CorpusObject, OpensByItsHeadersAlone) {
  const fs::path path = made_corpus("headers", 100'000, 200);
  ASSERT_GT(fs::file_size(path), 300u * kPage);
  Requests requests;
  const Corpus corpus = object_corpus(path, requests);
  EXPECT_LE(requests.count, 3);  // its beginning, its end, and the end of the offsets
  EXPECT_LE(requests.bytes, 5 * kPage);
  EXPECT_EQ(corpus.num_documents(), 100'000);
  fs::remove(path);
}

TEST(CorpusObject, IsTheCorpusOfTheFile) {
  const fs::path path = made_corpus("same", 20'000, 300);
  const Corpus file(path);
  Requests requests;
  const Corpus object = object_corpus(path, requests, 4 * kPage);
  ASSERT_EQ(object.num_bytes(), file.num_bytes());
  std::vector<int64_t> ends;
  for (int64_t i = 0; i < file.num_documents(); ++i) {
    ends.push_back((i == 0 ? 0 : ends.back()) + file.document_bytes(i));
    ASSERT_EQ(object.document_bytes(i), file.document_bytes(i));
    ASSERT_EQ(object.document(i).str(), file.document(i).str());
  }
  EXPECT_EQ(object.part(7, 1, 2).str(), file.document(7).str().substr(1, 2));
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const auto position = static_cast<int64_t>(random() % static_cast<uint64_t>(file.num_bytes()));
    const auto expected = std::upper_bound(ends.begin(), ends.end(), position) - ends.begin();
    for (const Corpus* corpus : {&object, &file}) {
      const DocumentPlace found = corpus->find(position);
      ASSERT_EQ(found.document, expected);
      ASSERT_EQ(found.begin, expected == 0 ? 0 : ends[static_cast<size_t>(expected) - 1]);
    }
  }
  EXPECT_EQ(corpus_fingerprint(CorpusDocuments(object)), corpus_fingerprint(CorpusDocuments(file)));
  fs::remove(path);
}

TEST(CorpusObject, FindsADocumentInFewRequests) {
  const fs::path path = made_corpus("find", 300'000, 100);  // 37 pages of offsets
  Requests requests;
  const Corpus corpus = object_corpus(path, requests, 2 * kPage);  // nothing is kept for long
  const int64_t before = requests.count;
  constexpr int kFinds = 100;
  for (int i = 0; i < kFinds; ++i) (void)corpus.find(i * (corpus.num_bytes() / kFinds));
  EXPECT_LT(requests.count - before, 6 * kFinds);
  fs::remove(path);
}

void expect_the_rows_of(const Corpus& file, const Corpus& object, bool completion_only) {
  const ByteTokenizer tokenizer;
  const LaneOptions options{
      .global_sequences = 4, .sequence_length = 4096, .completion_only = completion_only};
  const CorpusDocuments of_file(file), of_object(object);
  const LaneContext here(of_file, tokenizer, options), there(of_object, tokenizer, options);
  Packer expected(here, 0, 4), packer(there, 0, 4, {}, 3);
  Batch expected_batch(0, 4, 4096), batch(0, 4, 4096);
  for (int step = 0; step < 100; ++step) {
    expected.fill(expected_batch);
    packer.fill(batch);
    ASSERT_EQ(batch.tokens, expected_batch.tokens) << "step " << step;
    ASSERT_EQ(batch.labels, expected_batch.labels) << "step " << step;
  }
}

TEST(CorpusObject, LanesReadTheSameRowsWhateverTheCacheHolds) {
  const fs::path path = made_corpus("lanes", 20'000, 300);
  const Corpus file(path);
  Requests requests;
  for (const int64_t pages : {1, 1000}) {
    SCOPED_TRACE(fmt::format("{} pages", pages));
    expect_the_rows_of(file, object_corpus(path, requests, pages * kPage), false);
  }
  fs::remove(path);
}

// Of each document up to three spans, some of them empty.
fs::path spanned_corpus(int num_documents) {
  const fs::path path = fs::path(testing::TempDir()) / fmt::format("spans-{}.arrow", ::getpid());
  std::mt19937_64 random(9);
  CorpusWriter writer(path, "", true);
  for (int i = 0; i < num_documents; ++i) {
    const auto size = static_cast<int64_t>(random() % 900);
    std::vector<ByteRange> spans;
    for (int64_t end = 0, left = static_cast<int64_t>(random() % 4); left > 0; --left) {
      const int64_t begin = end + static_cast<int64_t>(random() % 200);
      end = begin + static_cast<int64_t>(random() % 100);
      if (end <= size) spans.push_back({begin, end});
    }
    writer.append(std::string(static_cast<size_t>(size), static_cast<char>('a' + i % 26)), spans);
  }
  writer.commit();
  return path;
}

TEST(CorpusObject, LossSpansAreThoseOfTheFile) {
  const fs::path path = spanned_corpus(20'000);
  const Corpus file(path);
  Requests requests;
  const Corpus object = object_corpus(path, requests, 4 * kPage);
  EXPECT_LE(requests.bytes, 6 * kPage);  // as little as without the column
  ASSERT_TRUE(object.has_loss_spans());
  for (int64_t i = 0; i < file.num_documents(); ++i) {
    const std::vector<ByteRange> expected = file.loss_spans(i), found = object.loss_spans(i);
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), found.begin(), found.end(),
                           [](const ByteRange& a, const ByteRange& b) {
                             return a.begin == b.begin && a.end == b.end;
                           }));
  }
  EXPECT_EQ(corpus_fingerprint(CorpusDocuments(object), true),
            corpus_fingerprint(CorpusDocuments(file), true));

  expect_the_rows_of(file, object, true);
  fs::remove(path);
}

fs::path compressed_corpus() {
  const fs::path path = fs::path(testing::TempDir()) / fmt::format("packed-{}.arrow", ::getpid());
  arrow::LargeStringBuilder builder;
  for (int i = 0; i < 100'000; ++i) EXPECT_TRUE(builder.Append("a text").ok());
  const std::shared_ptr<arrow::Array> column = *builder.Finish();
  const auto batch = arrow::RecordBatch::Make(arrow::schema({arrow::field("text", column->type())}),
                                              column->length(), {column});
  auto options = arrow::ipc::IpcWriteOptions::Defaults();
  options.codec = *arrow::util::Codec::Create(arrow::Compression::ZSTD);
  const auto out = *arrow::io::BufferOutputStream::Create();
  const auto writer = *arrow::ipc::MakeStreamWriter(out.get(), batch->schema(), options);
  EXPECT_TRUE(writer->WriteRecordBatch(*batch).ok());
  EXPECT_TRUE(writer->Close().ok());
  write_file_atomic(path, (*out->Finish())->ToString());
  return path;
}

TEST(CorpusObject, WhatCannotBeReadInPartsIsRefused) {
  Requests requests;
  const auto refusal = [&](const char* name) {
    return error_of([&] { object_corpus(kGoldens / name, requests); });
  };
  EXPECT_THAT(refusal("feather.arrow"), HasSubstr("Feather"));
  EXPECT_THAT(refusal("feather_lz4.arrow"), HasSubstr("skein data ingest"));
  const fs::path packed = compressed_corpus();
  EXPECT_THAT(error_of([&] { object_corpus(packed, requests); }), HasSubstr("compressed"));
  fs::remove(packed);
  const fs::path cut = fs::path(testing::TempDir()) / fmt::format("cut-{}.arrow", ::getpid());
  const fs::path whole = made_corpus("whole", 1000, 0);
  write_file_atomic(cut, read_file(whole).substr(0, fs::file_size(whole) - 8));
  EXPECT_THAT(error_of([&] { object_corpus(cut, requests); }), HasSubstr("truncated?"));
  fs::remove(cut);
  fs::remove(whole);
}

TEST(CorpusObject, ReadsWhatOthersWrite) {
  Requests requests;
  const Corpus file(kGoldens / "datasets.arrow");
  const Corpus object = object_corpus(kGoldens / "datasets.arrow", requests);
  ASSERT_EQ(object.num_documents(), file.num_documents());
  for (int64_t i = 0; i < file.num_documents(); ++i) {
    EXPECT_EQ(object.document(i).str(), file.document(i).str());
  }
}

}  // namespace
}  // namespace skein
