// Shards that are not one corpus, and shards without text.
#include "skein/prepare/ingest_shards.h"

#include <gmock/gmock.h>

#include "skein/prepare/dedup/dedup.h"
#include "tests/data/ingest_testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class IngestShards : public Ingest {
 protected:
  fs::path shards() const { return folder_ / "shards"; }
  // Documents and errors of one machine's part.
  std::string make(const ShardOptions& options, bool overwrite = false) {
    num_made_ = num_empty_ = 0;
    return test::error_of([&] {
      ingest_shards({folder_ / "in"}, shards(), {.overwrite = overwrite}, options,
                    [&](const fs::path&, const IngestReport& report) {
                      ++num_made_;
                      num_empty_ += report.num_documents == 0 ? 1 : 0;
                    });
    });
  }
  int num_made_ = 0, num_empty_ = 0;
};

TEST_F(IngestShards, OfOtherListsOfInputsAreRefusedWhereMade) {
  for (const char* name : {"b", "c", "d"}) write(fmt::format("in/{}.txt", name), name);
  ASSERT_EQ(make({2, 0, 2}), "");
  write("in/a.txt", "a");  // the division of documents moves
  EXPECT_THAT(make({2, 1, 2}),
              AllOf(HasSubstr("part-00000-of-00002.arrow of another list of inputs"),
                    HasSubstr("of 3 files, 3 bytes"), HasSubstr("of 4 files, 4 bytes"),
                    HasSubstr("--overwrite on every machine")));
  EXPECT_FALSE(fs::exists(shard_path(shards(), 1, 2)));
  fs::remove(folder_ / "in/a.txt");
  EXPECT_EQ(make({2, 1, 2}), "");
  EXPECT_EQ(documents(shards()), (Documents{"b", "c", "d"}));
}

TEST_F(IngestShards, OfOtherListsOfInputsAreRefusedWhereRead) {
  for (const char* name : {"b", "c", "d"}) write(fmt::format("in/{}.txt", name), name);
  ASSERT_EQ(make({2, 0, 2}), "");
  write("in/a.txt", "a");
  ASSERT_EQ(make({2, 1, 2}, true), "");
  const auto refused = AllOf(HasSubstr("part-00001-of-00002.arrow is of another list of inputs"),
                             HasSubstr("again, with --overwrite"));
  EXPECT_THAT(test::error_of([&] { Corpus{shards()}; }), refused);
  EXPECT_THAT(error_of({shards()}), refused);
  EXPECT_THAT(test::error_of([&] { dedup({shards()}, out(), {}); }), refused);
  ASSERT_EQ(make({2, 0, 1}, true), "");
  EXPECT_EQ(documents(shards()), (Documents{"a", "b", "c", "d"}));
}

TEST_F(IngestShards, AFolderAndAFileOfItAreTheFolder) {
  for (const char* name : {"b", "c", "d"}) write(fmt::format("in/{}.txt", name), name);
  ASSERT_EQ(make({3, 0, 1}), "");
  const Documents all{"b", "c", "d"};
  EXPECT_EQ(ingested({shards(), shard_path(shards(), 1, 3)}), all);
  EXPECT_EQ(ingested({shard_path(shards(), 1, 3), shards()}), (Documents{"c", "b", "d"}));
}

TEST_F(IngestShards, OfOtherOptionsAreRefused) {
  for (const char* name : {"b", "c", "d"}) write(fmt::format("in/{}.txt", name), name);
  ASSERT_EQ(make({2, 0, 2}), "");
  IngestOptions other;
  other.invalid_utf8 = InvalidUtf8::kReplace;
  EXPECT_THAT(test::error_of([&] {
                ingest_shards({folder_ / "in"}, shards(), other, {2, 1, 2}, [](auto&&...) {});
              }),
              HasSubstr("made with other options"));
}

TEST_F(IngestShards, TimesOfInputsDoNotMatter) {
  for (const char* name : {"a", "b"}) write(fmt::format("in/{}.txt", name), name);
  ASSERT_EQ(make({2, 0, 2}), "");
  fs::last_write_time(folder_ / "in/a.txt",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  fs::last_write_time(folder_ / "in/b.txt",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  ASSERT_EQ(make({2, 1, 2}), "");
  EXPECT_EQ(documents(shards()), (Documents{"a", "b"}));
}

TEST_F(IngestShards, OfTwoDivisionsAreRefused) {
  for (const char* name : {"a", "b", "c"}) write(fmt::format("in/{}.txt", name), name);
  ASSERT_EQ(make({2}), "");
  for (const bool overwrites : {false, true}) {
    EXPECT_THAT(make({3}, overwrites), HasSubstr("holds part-00000-of-00002.arrow, of another "
                                                 "division"));
  }
  EXPECT_THAT(test::error_of([&] { dedup({folder_ / "in"}, shards(), {.num_shards = 1}); }),
              HasSubstr("of another division"));
  fs::rename(shards(), folder_ / "two");
  ASSERT_EQ(make({3}), "");
  for (const int shard : {0, 1}) {
    fs::copy(shard_path(folder_ / "two", shard, 2), shard_path(shards(), shard, 2));
  }
  const auto refused = HasSubstr("holds shards of two divisions");
  EXPECT_THAT(test::error_of([&] { Corpus{shards()}; }), refused);
  EXPECT_THAT(error_of({shards()}), refused);
}

TEST_F(IngestShards, MayBeEmpty) {
  write("in/a.jsonl", "{\"text\": \"first\"}\n");
  for (const char* name : {"b", "c"}) {
    write(fmt::format("in/{}.jsonl", name), "{\"text\": \"\"}\n{\"text\":\"\"}\n");
  }
  write("in/d.jsonl", "{\"text\": \"last\"}\n");
  ASSERT_EQ(make({4}), "");
  EXPECT_EQ(num_made_, 4);
  EXPECT_EQ(num_empty_, 2);
  EXPECT_EQ(documents(shard_path(shards(), 1, 4)), Documents{});
  EXPECT_EQ(documents(shards()), (Documents{"first", "last"}));
  EXPECT_EQ(ingested({shards()}), (Documents{"first", "last"}));
  dedup({shards()}, out(), {.overwrite = true});
  EXPECT_EQ(documents(out()), (Documents{"first", "last"}));
}

TEST_F(IngestShards, WithoutAnyTextAreAnErrorOfTheProcessThatMakesAll) {
  for (const char* name : {"a", "b"}) write(fmt::format("in/{}.jsonl", name), "{\"text\": \"\"}\n");
  const auto refused = HasSubstr("no text in any of the 2 shards of ");
  EXPECT_THAT(make({2}), refused);
  EXPECT_THAT(make({2}), refused);  // also of those that are there
  EXPECT_EQ(make({2, 0, 2}), "");   // the other machine may have some
}

TEST_F(IngestShards, TheReportComesBeforeTheCorpus) {
  const fs::path input = write("a.jsonl", "{\"text\": \"\"}\n");
  int64_t num_left_out = 0;
  IngestOptions options;
  options.on_read = [&](const fs::path& corpus, const IngestReport& report) {
    EXPECT_EQ(corpus, out());
    num_left_out = report.num_left_out;
  };
  EXPECT_THAT(error_of({input}, options), HasSubstr("1 empty documents): expected some that stay"));
  EXPECT_EQ(num_left_out, 1);
  write("a.jsonl", "{\"text\": \"text\"}\n");
  options.on_read = [](const fs::path&, const IngestReport&) {
    fail(ErrorCode::kIo, "no room for the report");
  };
  EXPECT_THAT(error_of({input}, options), HasSubstr("1 of 1 pieces are finished and stay in"));
  EXPECT_FALSE(fs::exists(out()));
  EXPECT_EQ(ingested({input}), Documents{"text"});
  EXPECT_FALSE(report_.restart.empty());
}

}  // namespace
}  // namespace skein
