#include "skein/data/corpus/corpus.h"

#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <random>
#include <thread>

#include "skein/base/error.h"
#include "skein/data/corpus/corpus_writer.h"
#include "skein/data/lanes/blocks.h"
#include "tests/error_of.h"
#include "tests/places.h"

namespace skein {
namespace {

using Documents = std::vector<std::string>;

const fs::path kGoldens = fs::path(kSourceFolder) / "skein/data/corpus/testdata";
const Documents kGoldenDocuments = {"first document", "", "zweites Dokument: äöü €", "line\nbreak",
                                    [] {
                                      std::string text;
                                      for (int i = 0; i < 40; ++i) text += "repeat ";
                                      return text;
                                    }()};

fs::path new_folder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / fmt::format("{}-{}", name, ::getpid());
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

Documents documents_of(const Corpus& corpus) {
  Documents documents;
  for (int64_t i = 0; i < corpus.num_documents(); ++i)
    documents.push_back(corpus.document(i).str());
  return documents;
}

template <typename Builder>
std::shared_ptr<arrow::Array> strings(const Documents& documents) {
  Builder builder;
  for (const std::string& text : documents) {
    EXPECT_TRUE((text == "<null>" ? builder.AppendNull() : builder.Append(text)).ok());
  }
  return *builder.Finish();
}

std::string stream_of(const std::vector<std::shared_ptr<arrow::RecordBatch>>& batches) {
  const auto out = *arrow::io::BufferOutputStream::Create();
  const auto writer = *arrow::ipc::MakeStreamWriter(out.get(), batches.at(0)->schema());
  for (const auto& batch : batches) EXPECT_TRUE(writer->WriteRecordBatch(*batch).ok());
  EXPECT_TRUE(writer->Close().ok());
  return (*out->Finish())->ToString();
}

std::shared_ptr<arrow::RecordBatch> batch_of(const std::string& name,
                                             const std::shared_ptr<arrow::Array>& column) {
  return arrow::RecordBatch::Make(arrow::schema({arrow::field(name, column->type())}),
                                  column->length(), {column});
}

Corpus corpus_of(const std::string& bytes) {
  return Corpus::from_bytes(std::as_bytes(std::span(bytes)), "test.arrow");
}

std::string error_of(const std::string& bytes) {
  return test::error_of([&] { corpus_of(bytes); });
}

TEST(Corpus, ReadsWhatItWrites) {
  const fs::path path = new_folder("corpus") / "new/folder/corpus.arrow";
  CorpusWriter writer(path);
  Documents documents;
  for (int i = 0; i < 1000; ++i)
    documents.emplace_back(i * 7 % 300, static_cast<char>('a' + i % 26));
  documents.emplace_back(3 << 20, 'x');  // larger than the spool's buffer
  for (const std::string& text : documents) writer.append(text);
  EXPECT_FALSE(fs::exists(path));
  writer.commit();

  const Corpus corpus(path);
  EXPECT_EQ(documents_of(corpus), documents);
  EXPECT_EQ(corpus.num_bytes(), writer.num_bytes());
  // Nothing is left behind.
  EXPECT_EQ(std::distance(fs::directory_iterator(path.parent_path()), {}), 1);
}

TEST(Corpus, ReadsWhatOthersWrite) {
  for (const char* name : {"datasets.arrow", "feather.arrow", "feather_lz4.arrow"}) {
    EXPECT_EQ(documents_of(Corpus(kGoldens / name)), kGoldenDocuments) << name;
  }
}

TEST(Corpus, IsZeroCopy) {
  const std::string bytes =
      stream_of({batch_of("text", strings<arrow::LargeStringBuilder>({"one", "two"}))});
  const Corpus corpus = corpus_of(bytes);
  const HeldText first = corpus.document(0), second = corpus.document(1);
  EXPECT_GE(first.view().data(), bytes.data());
  EXPECT_LT(second.view().data(), bytes.data() + bytes.size());
}

TEST(Corpus, ReadsBatchesNullsAndSlices) {
  const auto wide = strings<arrow::LargeStringBuilder>({"a", "<null>", "ccc", "d"});
  const std::string bytes =
      stream_of({batch_of("text", wide), batch_of("text", wide->Slice(1, 2)),
                 batch_of("text", wide->Slice(0, 0)), batch_of("text", wide->Slice(3, 1))});
  const Corpus corpus = corpus_of(bytes);
  EXPECT_EQ(documents_of(corpus), (Documents{"a", "", "ccc", "d", "", "ccc", "d"}));
  EXPECT_EQ(corpus.num_bytes(), 9);
  const std::string narrow =
      stream_of({batch_of("text", strings<arrow::StringBuilder>({"x", "", "zz"}))});
  EXPECT_EQ(documents_of(corpus_of(narrow)), (Documents{"x", "", "zz"}));
}

TEST(Corpus, ReadsTheSameInManyThreads) {
  const Corpus corpus(kGoldens / "datasets.arrow");
  std::vector<std::thread> threads;
  std::atomic<int> num_wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        num_wrong += corpus.document(i % 5).str() != kGoldenDocuments[static_cast<size_t>(i % 5)];
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(num_wrong, 0);
}

TEST(Corpus, SaysWhatIsWrong) {
  EXPECT_NE(error_of("").find("test.arrow: is empty"), std::string::npos);
  EXPECT_NE(error_of("This is a text and no Arrow file.")
                .find("is no Arrow file (it begins with \"This is"),
            std::string::npos);
  EXPECT_NE(error_of(stream_of({batch_of("body", strings<arrow::StringBuilder>({"x"}))}))
                .find("0 columns named `text` (its columns: body)"),
            std::string::npos);
  arrow::Int64Builder numbers;
  EXPECT_TRUE(numbers.Append(1).ok());
  EXPECT_NE(error_of(stream_of({batch_of("text", *numbers.Finish())})).find("of type int64"),
            std::string::npos);
  EXPECT_THROW(Corpus("/no/such/corpus.arrow"), Error);
}

TEST(Corpus, NoTruncationGoesUnseen) {
  for (const char* name : {"datasets.arrow", "feather.arrow"}) {
    const std::string bytes = read_file(kGoldens / name);
    for (size_t size = 0; size < bytes.size(); ++size) {
      const std::string cut = bytes.substr(0, size);
      EXPECT_NE(error_of(cut), "") << name << " cut to " << size << " bytes";
    }
  }
}

TEST(Corpus, DamageIsAnErrorOrReadsInBounds) {
  std::mt19937 random(5);
  for (const char* name : {"datasets.arrow", "feather.arrow", "feather_lz4.arrow"}) {
    const std::string bytes = read_file(kGoldens / name);
    for (int i = 0; i < 4000; ++i) {
      std::string damaged = bytes;
      damaged[random() % damaged.size()] = static_cast<char>(random());
      try {
        const Corpus corpus = corpus_of(damaged);
        int64_t num_bytes = 0;
        for (int64_t d = 0; d < corpus.num_documents(); ++d) {
          num_bytes += static_cast<int64_t>(corpus.document(d).str().size());
        }
        EXPECT_LE(num_bytes, corpus.num_bytes());
      } catch (const Error&) {
      }
    }
  }
}

TEST(Corpus, OffsetsThatRunBackOrOutAreRefused) {
  const std::string good =
      stream_of({batch_of("text", strings<arrow::LargeStringBuilder>({"aaaa", "bbbb"}))});
  // The offsets 0, 4, 8 as they are stored in the file.
  const std::string offsets{"\0\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0", 24};
  const size_t place = good.find(offsets);
  ASSERT_NE(place, std::string::npos);
  for (const int value : {9, 100, -1}) {
    for (const int index : {0, 1, 2}) {
      std::string damaged = good;
      const int64_t offset = value;
      damaged.replace(place + static_cast<size_t>(index) * 8, 8,
                      reinterpret_cast<const char*>(&offset), 8);
      EXPECT_NE(error_of(damaged).find("row"), std::string::npos) << index << " = " << value;
    }
  }
}

TEST(Corpus, NullsThatHaveTextAreRefused) {
  const std::string good =
      stream_of({batch_of("text", strings<arrow::LargeStringBuilder>({"aaaa", "<null>", "bbbb"}))});
  const std::string offsets{"\0\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0", 24};
  const size_t place = good.find(offsets);
  ASSERT_NE(place, std::string::npos);
  std::string damaged = good;
  damaged[place + 16] = '\6';
  EXPECT_EQ(error_of(good), "");
  EXPECT_NE(error_of(damaged).find("row 1 is null and has text"), std::string::npos);
}

void write_corpus(const fs::path& path, const Documents& documents) {
  CorpusWriter writer(path);
  for (const std::string& text : documents) writer.append(text);
  writer.commit();
}

// What a byte of the corpus, laid end to end, belongs to.
TEST(Corpus, FindsTheDocumentOfEveryByte) {
  const auto column = strings<arrow::LargeStringBuilder>({"", "ab", "", "", "cde", "<null>", "f"});
  const auto empty = strings<arrow::LargeStringBuilder>({"", ""});
  const std::string bytes = stream_of({batch_of("text", empty), batch_of("text", column->Slice(1)),
                                       batch_of("text", empty), batch_of("text", column)});
  const Corpus corpus = corpus_of(bytes);
  int64_t position = 0;
  for (int64_t i = 0; i < corpus.num_documents(); ++i) {
    const int64_t begin = position;
    for (size_t c = 0; c < corpus.document(i).size(); ++c, ++position) {
      EXPECT_EQ(corpus.find(position).document, i) << position;
      EXPECT_EQ(corpus.find(position).begin, begin) << position;
    }
  }
  EXPECT_EQ(position, corpus.num_bytes());
  EXPECT_THROW(corpus.find(position), Error);
}

TEST(Corpus, AFolderIsItsFilesInTheOrderOfTheirNames) {
  const fs::path folder = new_folder("corpus-folder");
  write_corpus(folder / "b.arrow", {"three"});
  write_corpus(folder / "a.arrow", {"one", "two"});
  write_corpus(folder / ".hidden.arrow", {"not this"});
  write_file_atomic(folder / "notes.txt", "nor this");
  const Corpus corpus(folder);
  EXPECT_EQ(documents_of(corpus), (Documents{"one", "two", "three"}));
  EXPECT_EQ(corpus.find(6).document, 2);
  EXPECT_EQ(corpus.home(1).file, folder / "a.arrow");
  EXPECT_EQ(corpus.home(1).document, 1);
  EXPECT_EQ(corpus.home(2).file, folder / "b.arrow");
  EXPECT_EQ(corpus.home(2).document, 0);
  for (const int64_t i : {0, 2, 1}) {
    const HeldText text = corpus.document(i);
    corpus.forget(text);
  }
  EXPECT_EQ(documents_of(corpus), (Documents{"one", "two", "three"}));
}

TEST(Corpus, AFolderWithoutAllOfItsShardsIsRefused) {
  const fs::path folder = new_folder("corpus-shards");
  EXPECT_NE(test::error_of([&] { Corpus{folder}; }).find("a folder without .arrow files"),
            std::string::npos);
  for (const int shard : {0, 1, 3}) {
    write_corpus(folder / fmt::format("part-{:05}-of-00004.arrow", shard), {"text"});
  }
  EXPECT_NE(test::error_of([&] {
              Corpus{folder};
            }).find("holds 3 of the 4 files part-…-of-00004.arrow, number 2 is not there"),
            std::string::npos);
  write_corpus(folder / "part-00002-of-00004.arrow", {"text"});
  EXPECT_EQ(Corpus(folder).num_documents(), 4);
}

TEST(Corpus, AnErrorOfOneOfManyFilesNamesTheFirstThatIsWrong) {
  const fs::path folder = new_folder("corpus-many");
  for (int i = 0; i < 100; ++i) write_corpus(folder / fmt::format("{:03}.arrow", i), {"text"});
  for (const char* name : {"037.arrow", "081.arrow"}) write_file_atomic(folder / name, "damage");
  EXPECT_NE(test::error_of([&] { Corpus{folder}; }).find("037.arrow: is no Arrow file"),
            std::string::npos);
}

// How much of this file this process holds in memory, from /proc/self/smaps.
int64_t resident_bytes(const fs::path& path) {
  std::ifstream smaps("/proc/self/smaps");
  bool of_path = false;
  int64_t bytes = 0;
  for (std::string line; std::getline(smaps, line);) {
    const bool is_field = line[0] >= 'A' && line[0] <= 'Z';  // of the mapping named before
    if (!is_field) of_path = line.ends_with(path.string());
    if (of_path && line.starts_with("Rss:")) bytes += std::atoll(line.c_str() + 4) * 1024;
  }
  return bytes;
}

TEST(Corpus, TextThatWasReadDoesNotStayInMemory) {
  const fs::path path = new_folder("forget") / "corpus.arrow";
  constexpr int64_t kDocumentBytes = 1000, kNumDocuments = 40'000;
  {
    CorpusWriter writer(path);
    for (int64_t i = 0; i < kNumDocuments; ++i) writer.append(std::string(kDocumentBytes, 'x'));
    writer.commit();
  }
  const Corpus corpus(path);
  int64_t sum = 0;
  const auto read_all = [&](bool forgetting) {
    for (int64_t i = 0; i < kNumDocuments; ++i) {
      const HeldText text = corpus.document(i);
      for (const char c : text.view()) sum += c == 'x' ? 1 : 0;
      if (forgetting) corpus.forget(text);
    }
  };
  read_all(false);
  EXPECT_GT(resident_bytes(path), kNumDocuments * kDocumentBytes);
  corpus.forget_all();
  EXPECT_EQ(resident_bytes(path), 0);
  read_all(true);
  EXPECT_LT(resident_bytes(path), 4 << 20);
  EXPECT_EQ(sum, 2 * kNumDocuments * kDocumentBytes);
}

// Lanes read blocks in any order; here each block lies within what one page fault maps.
TEST(CorpusDocuments, ForgetsBlocksThatAreReadInAnyOrder) {
  const fs::path path = new_folder("forget_any_order") / "corpus.arrow";
  constexpr int64_t kDocumentBytes = 1024, kNumDocuments = 40'000;
  constexpr int64_t kOfBlock = 32, kBlocks = kNumDocuments / kOfBlock, kStride = 611;  // coprime
  constexpr uintptr_t kMappedBytes = 64 << 10;
  {
    CorpusWriter writer(path);
    for (int64_t i = 0; i < kNumDocuments; ++i) writer.append(std::string(kDocumentBytes, 'x'));
    writer.commit();
  }
  const Corpus corpus(path);
  const CorpusDocuments documents(corpus);
  int64_t sum = 0, read = 0, most = 0;
  for (int64_t i = 0; i < kBlocks; ++i) {
    const int64_t first = i * kStride % kBlocks * kOfBlock;
    const HeldText first_text = documents.part(first, 0, kDocumentBytes);
    const auto begin = reinterpret_cast<uintptr_t>(first_text.view().data());
    const uintptr_t end = begin + kOfBlock * kDocumentBytes;
    if (begin / kMappedBytes != end / kMappedBytes) continue;
    for (int64_t document = first; document < first + kOfBlock; ++document) {
      const HeldText text = documents.part(document, 0, kDocumentBytes);
      for (const char c : text.view()) sum += c == 'x' ? 1 : 0;
      documents.forget(text);
      ++read;
    }
    most = std::max(most, resident_bytes(path));
  }
  EXPECT_GT(read, kNumDocuments / 3);
  EXPECT_EQ(sum, read * kDocumentBytes);
  EXPECT_LT(most, 16 << 20);
}

TEST(CorpusFile, ThatIsAPointerOfGitLfsIsNamed) {
  const fs::path path = fs::path(testing::TempDir()) / "pointer.arrow";
  write_file_atomic(path, "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n");
  const std::string error = test::error_of([&] { open_corpus(path, "data.train"); });
  EXPECT_THAT(error, testing::HasSubstr("data.train: "));
  EXPECT_THAT(error, testing::HasSubstr("pointer.arrow: a Git LFS pointer, not the file"));
  fs::remove(path);
}

}  // namespace
}  // namespace skein
