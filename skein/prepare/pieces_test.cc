#include "skein/prepare/pieces.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "skein/data/corpus/corpus_writer.h"
#include "tests/data/ingest_testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Hands on the documents that are longer than a byte, twice, and counts them.
class TwiceWorker : public PieceWorker {
 public:
  explicit TwiceWorker(std::atomic<int64_t>& num_seen) : num_seen_(num_seen) {}
  void add(const InputDocument& document, PieceOutput& out) override {
    ++num_seen_;
    if (document.text.size() < 2) return;
    ++num_handed_on_;
    out.append(document.text, document.origin);
    out.append(fmt::format("{} {}", document.input, document.text), document.origin);
  }
  Json take_counters() override { return {{"handed_on", std::exchange(num_handed_on_, 0)}}; }

 private:
  std::atomic<int64_t>& num_seen_;
  int64_t num_handed_on_ = 0;
};

class PiecesOf : public Ingest {
 protected:
  // A file that is a piece of its own: lines that nobody wants make it large.
  fs::path write_large(const std::string& name, const std::string& lines) {
    return write(name, lines + std::string(33 << 20, '\n'));
  }
  PiecesOptions options(int num_threads = 2) const {
    return {.work_folder = folder_ / "work", .num_threads = num_threads, .worker = "twice"};
  }
  std::vector<InputFile> inputs() { return find_inputs({folder_ / "in"}).files; }
  void make(Pieces& pieces) {
    pieces.make([&] { return std::make_unique<TwiceWorker>(num_seen_); });
  }
  // "text @ source:record" of all documents.
  Documents all(const Pieces& pieces) {
    Documents all;
    for (int64_t i = 0; i < pieces.num_pieces(); ++i) {
      pieces.read(i, [&](const PieceDocument& document) {
        const fs::path source(document.origin.source);
        all.push_back(fmt::format("{} @ {}:{}", document.text, source.filename().string(),
                                  document.origin.record));
      });
    }
    return all;
  }

  std::atomic<int64_t> num_seen_ = 0;
};

TEST_F(PiecesOf, KeepOrderOriginsAndCounters) {
  write_large("in/a.jsonl", "\n{\"text\": \"aa\"}\n{\"text\": \"b\"}\n");
  write("in/b.txt", "cc");
  write("in/c.csv", "id,text\n1,dd\n\n2,ee\n");
  const Documents wanted{"aa @ a.jsonl:2", "0 aa @ a.jsonl:2", "cc @ b.txt:1", "1 cc @ b.txt:1",
                         "dd @ c.csv:1",   "2 dd @ c.csv:1",   "ee @ c.csv:2", "2 ee @ c.csv:2"};
  for (const int num_threads : {1, 2, 7}) {
    Pieces pieces(inputs(), options(num_threads));
    ASSERT_EQ(pieces.num_pieces(), 2);  // the small files are one
    make(pieces);
    EXPECT_EQ(all(pieces), wanted);
    EXPECT_EQ(pieces.report(0).counters["handed_on"], 1);
    EXPECT_EQ(pieces.report(1).counters["handed_on"], 3);
    EXPECT_EQ(pieces.total().num_documents_read, 5);
    EXPECT_EQ(pieces.total().num_documents, 8);
    pieces.remove();
  }
  EXPECT_FALSE(fs::exists(folder_ / "work"));
}

TEST_F(PiecesOf, WhatIsFinishedIsTakenAsItIs) {
  write_large("in/a.jsonl", "{\"text\": \"aa\"}\n");
  write_large("in/b.jsonl", "{\"text\": \"bb\"}\n");
  const auto made = [&](const PiecesOptions& options) {
    Pieces pieces(inputs(), options);
    num_seen_ = 0;
    make(pieces);
    EXPECT_EQ(all(pieces).size(), 4u);
    return std::pair(num_seen_.load(), pieces.notes());
  };
  EXPECT_EQ(made(options()).first, 2);
  auto [num_seen, notes] = made(options(7));  // the number of threads matters to nobody
  EXPECT_EQ(num_seen, 0);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("2 of 2 pieces were finished before")));

  write_large("in/b.jsonl", "{\"text\": \"BB\"}\n");  // as long, and newer
  std::tie(num_seen, notes) = made(options());
  EXPECT_EQ(num_seen, 1);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("1 of 2"), HasSubstr("1 pieces")));

  PiecesOptions others = options();
  others.worker = "another";
  std::tie(num_seen, notes) = made(others);
  EXPECT_EQ(num_seen, 2);
  EXPECT_THAT(notes, ElementsAre(AllOf(HasSubstr("2 pieces"), HasSubstr("other options"))));

  // A piece whose text was cut short is none.
  for (const auto& entry : fs::directory_iterator(folder_ / "work")) {
    if (entry.path().extension() == ".text") fs::resize_file(entry.path(), 1);
  }
  EXPECT_EQ(made(others).first, 2);
}

TEST_F(PiecesOf, TheErrorIsThatOfTheFirstPieceAndTheRestIsKept) {
  write_large("in/a.jsonl", "{\"text\": \"aa\"}\n");
  for (const char* name : {"in/b.jsonl", "in/c.jsonl", "in/d.jsonl"}) write_large(name, "bad\n");
  for (const int num_threads : {1, 2, 4}) {
    Pieces pieces(inputs(), options(num_threads));
    EXPECT_THAT(test::error_of([&] { make(pieces); }), HasSubstr("b.jsonl:1: not JSON"));
    EXPECT_THAT(pieces.kept(), HasSubstr("1 of 4 pieces are finished"));
  }
  for (const char* name : {"in/b.jsonl", "in/c.jsonl", "in/d.jsonl"}) write_large(name, "");
  num_seen_ = 0;
  Pieces pieces(inputs(), options());
  make(pieces);
  EXPECT_EQ(num_seen_, 0);
  EXPECT_EQ(all(pieces).size(), 2u);
}

class JoinedPiecesOf : public PiecesOf {
 protected:
  PiecesOptions joined(int num_threads = 2) const {
    PiecesOptions joined = options(num_threads);
    joined.joins_texts = true;
    return joined;
  }
  // What is expected of texts and origins, and that the texts lie in one file.
  void expect(const Pieces& pieces, const Documents& texts) {
    Documents found;
    std::string joined(kCorpusTextBegin, '\0');
    for (int64_t i = 0; i < pieces.num_pieces(); ++i) {
      EXPECT_EQ(pieces.text_file(i).filename(), "joined.text");
      pieces.read(i, [&](const PieceDocument& document) {
        EXPECT_EQ(document.begin, static_cast<int64_t>(joined.size()));
        found.emplace_back(document.text);
        joined += document.text;
      });
    }
    EXPECT_EQ(found, texts);
    EXPECT_EQ(read_file(folder_ / "work/joined.text"), joined);
    EXPECT_EQ(num_files_of_texts(), 1);
  }
  int64_t num_files_of_texts() const {
    int64_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_ / "work")) {
      count += entry.path().extension() == ".text";
    }
    return count;
  }
};

TEST_F(JoinedPiecesOf, TextsAreInOneFileInOrder) {
  Documents wanted;
  for (int i = 0; i < 9; ++i) {
    // Some are larger than what is looked at together, and none is.
    const std::string text(i % 3 == 1 ? 9 << 20 : 2 + i, static_cast<char>('a' + i));
    write_large(fmt::format("in/{}.jsonl", i), i == 6 ? "" : "{\"text\": \"" + text + "\"}\n");
    if (i == 6) continue;
    wanted.push_back(text);
    wanted.push_back(fmt::format("{} {}", i, text));
  }
  for (const int num_threads : {1, 2, 8}) {
    Pieces pieces(inputs(), joined(num_threads));
    make(pieces);
    expect(pieces, wanted);
    pieces.remove();
  }
  EXPECT_FALSE(fs::exists(folder_ / "work"));
}

TEST_F(JoinedPiecesOf, WhatIsFinishedComesToItsPlace) {
  const auto line = [](const char* text) { return fmt::format("{{\"text\": \"{}\"}}\n", text); };
  const auto make_again = [&](const PiecesOptions& options, int64_t num_seen) {
    Pieces pieces(inputs(), options);
    num_seen_ = 0;
    make(pieces);
    EXPECT_EQ(num_seen_, num_seen);
    return all(pieces).size();
  };
  for (const char* name : {"a", "b", "c"})
    write_large(fmt::format("in/{}.jsonl", name), line("xx"));
  EXPECT_EQ(make_again(options(), 3), 6u);  // each in a file of its own
  EXPECT_EQ(num_files_of_texts(), 3);
  EXPECT_EQ(make_again(joined(), 0), 6u);
  EXPECT_EQ(num_files_of_texts(), 1);
  EXPECT_EQ(make_again(options(), 0), 6u);  // they are taken from there

  write_large("in/b.jsonl", line("another text"));
  EXPECT_EQ(make_again(joined(), 1), 6u);
  write_large("in/0.jsonl", line("before all"));
  Pieces pieces(inputs(), joined());
  num_seen_ = 0;
  make(pieces);
  // The number of the input is in the texts of those that were made before: that of then.
  EXPECT_EQ(num_seen_, 1);
  expect(pieces, {"before all", "0 before all", "xx", "0 xx", "another text", "1 another text",
                  "xx", "2 xx"});
}

TEST_F(JoinedPiecesOf, ADamagedTextIsMadeAgain) {
  for (const char* name : {"a", "b"}) {
    write_large(fmt::format("in/{}.jsonl", name), "{\"text\": \"xx\"}\n");
  }
  {
    Pieces pieces(inputs(), joined());
    make(pieces);
  }
  fs::resize_file(folder_ / "work/joined.text", kCorpusTextBegin + 7);
  num_seen_ = 0;
  Pieces pieces(inputs(), joined());
  make(pieces);
  EXPECT_EQ(num_seen_, 1);
  expect(pieces, {"xx", "0 xx", "xx", "1 xx"});
}

TEST_F(JoinedPiecesOf, AnErrorKeepsWhatIsFinished) {
  write_large("in/a.jsonl", "bad\n");
  {
    Pieces pieces(inputs(), joined());
    EXPECT_THAT(test::error_of([&] { make(pieces); }), HasSubstr("a.jsonl:1: not JSON"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "work"));  // nothing was kept
  write_large("in/a.jsonl", "{\"text\": \"xx\"}\n");
  write_large("in/b.jsonl", "bad\n");
  {
    Pieces pieces(inputs(), joined());
    EXPECT_THAT(test::error_of([&] { make(pieces); }), HasSubstr("b.jsonl:1: not JSON"));
    EXPECT_THAT(pieces.kept(), HasSubstr("1 of 2 pieces are finished"));
  }
  write_large("in/b.jsonl", "{\"text\": \"yy\"}\n");
  num_seen_ = 0;
  Pieces pieces(inputs(), joined());
  make(pieces);
  EXPECT_EQ(num_seen_, 1);
  expect(pieces, {"xx", "0 xx", "yy", "1 yy"});
}

TEST_F(PiecesOf, AWorkFolderHasOneProcess) {
  write("in/a.txt", "aa");
  {
    Pieces pieces(inputs(), options());
    EXPECT_THAT(test::error_of([&] { Pieces(inputs(), options()); }),
                HasSubstr("work: another process works there"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "work"));  // nothing was kept
}

TEST_F(PiecesOf, AFileThatIsNamedTwiceIsReadTwice) {
  const fs::path file = write_large("in/a.jsonl", "{\"text\": \"aa\"}\n");
  Pieces pieces(find_inputs({file, file}).files, options());
  make(pieces);
  EXPECT_THAT(all(pieces), ElementsAre("aa @ a.jsonl:1", "0 aa @ a.jsonl:1", "aa @ a.jsonl:1",
                                       "1 aa @ a.jsonl:1"));
}

}  // namespace
}  // namespace skein
