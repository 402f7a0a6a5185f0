#include "skein/objects/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "skein/base/error.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::HasSubstr;

constexpr int64_t kPage = ObjectCache::kPageBytes;

char byte_at(int64_t position) { return static_cast<char>(1 + position * 2654435761 % 251); }

// Bytes that follow from their position, none of them zero.
class MadeObject : public RangeReader {
 public:
  explicit MadeObject(int64_t num_bytes) : num_bytes_(num_bytes) {}
  std::string name() const override { return "made"; }
  int64_t num_bytes() const override { return num_bytes_; }
  void read(int64_t begin, std::span<char> out) override {
    ++num_reads;
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    if (fails) fail(ErrorCode::kIo, "made: refused");
    for (size_t i = 0; i < out.size(); ++i) out[i] = byte_at(begin + static_cast<int64_t>(i));
  }

  std::atomic<int> num_reads = 0, delay_ms = 0;
  std::atomic<bool> fails = false;

 private:
  int64_t num_bytes_;
};

struct Made {
  explicit Made(int64_t num_bytes, int64_t max_bytes)
      : cache(max_bytes), reader(new MadeObject(num_bytes)) {
    object = cache.add(std::unique_ptr<RangeReader>(reader));
  }
  std::span<const std::byte> part(int64_t begin, int64_t num_bytes) const {
    return object->bytes().subspan(static_cast<size_t>(begin), static_cast<size_t>(num_bytes));
  }
  bool is_right(int64_t begin, int64_t num_bytes) const {
    for (int64_t i = begin; i < begin + num_bytes; ++i) {
      if (static_cast<char>(object->bytes()[static_cast<size_t>(i)]) != byte_at(i)) return false;
    }
    return true;
  }
  bool reads_right(int64_t begin, int64_t num_bytes) const {
    const ObjectHold hold = object->hold(part(begin, num_bytes));
    return is_right(begin, num_bytes);
  }

  ObjectCache cache;
  MadeObject* reader;
  std::shared_ptr<CachedObject> object;
};

TEST(ObjectCache, FetchesWhatIsMissingAndNothingTwice) {
  Made made(10 * kPage + 5, 64 * kPage);
  EXPECT_EQ(made.reader->num_reads, 0);
  EXPECT_TRUE(made.reads_right(3 * kPage - 1, 2));  // two pages, one request
  EXPECT_EQ(made.reader->num_reads, 1);
  EXPECT_EQ(made.cache.num_bytes(), 2 * kPage);
  EXPECT_TRUE(made.reads_right(2 * kPage, 2 * kPage));
  EXPECT_EQ(made.reader->num_reads, 1);
  EXPECT_TRUE(made.reads_right(0, 10 * kPage + 5));  // what lies before and behind
  EXPECT_EQ(made.reader->num_reads, 3);
  EXPECT_TRUE(made.object->has(made.part(0, 10 * kPage + 5)));
  EXPECT_TRUE(made.reads_right(10 * kPage, 5));
  EXPECT_EQ(made.reader->num_reads, 3);
  EXPECT_THAT(error_of([&] {
                made.object->hold({made.object->bytes().data() + 10 * kPage, 6});
              }),
              HasSubstr("asked for"));
}

TEST(ObjectCache, ReadsOnInEverLargerRequests) {
  Made made(1000 * kPage, 2000 * kPage);
  for (int64_t page = 0; page < 1000; ++page) ASSERT_TRUE(made.reads_right(page * kPage, 10));
  EXPECT_LT(made.reader->num_reads, 30);
}

TEST(ObjectCache, KeepsToItsLimitAndDropsWhatWasNotUsedForLongest) {
  Made made(100 * kPage, 4 * kPage);
  for (int64_t page = 0; page < 100; page += 2) {
    ASSERT_TRUE(made.reads_right(page * kPage, kPage));
    ASSERT_TRUE(made.reads_right(0, 1));
    ASSERT_LE(made.cache.num_bytes(), 4 * kPage);
  }
  EXPECT_EQ(made.reader->num_reads, 50);  // the first page is used all the time
  EXPECT_TRUE(made.object->has(made.part(98 * kPage, 1)));
  EXPECT_FALSE(made.object->has(made.part(50 * kPage, 1)));
  EXPECT_TRUE(made.reads_right(50 * kPage, kPage));  // again
}

TEST(ObjectCache, WhatSomebodyHoldsStays) {
  Made made(100 * kPage, 2 * kPage);
  {
    const ObjectHold first = made.object->hold(made.part(0, 3 * kPage));
    ObjectHold moved = made.object->hold(made.part(10 * kPage, 1));
    const ObjectHold second = std::move(moved);
    for (int64_t page = 20; page < 100; page += 2) {
      ASSERT_TRUE(made.reads_right(page * kPage, kPage));
    }
    EXPECT_TRUE(made.is_right(0, 3 * kPage));
    EXPECT_TRUE(made.is_right(10 * kPage, kPage));
    EXPECT_GE(made.cache.num_bytes(), 4 * kPage);
  }
  EXPECT_LE(made.cache.num_bytes(), 2 * kPage);
}

TEST(ObjectCache, ThreadsReadRightWhileOthersPushOut) {
  Made made(64 * kPage, 6 * kPage);
  std::atomic<int> num_wrong = 0;
  std::vector<std::jthread> threads;
  for (unsigned seed = 0; seed < 6; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 2000; ++i) {
        const auto begin = static_cast<int64_t>(random() % (62 * kPage));
        const auto count = 1 + static_cast<int64_t>(random() % (i % 20 == 0 ? 2 * kPage : 100));
        if (!made.reads_right(begin, count)) ++num_wrong;
        if (i % 50 == 0) {
          made.cache.in_background(
              [object = made.object, part = made.part(begin, count)] { (void)object->hold(part); });
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(num_wrong, 0);
}

TEST(ObjectCache, APageThatIsOnItsWayIsNotAskedForTwice) {
  Made made(4 * kPage, 8 * kPage);
  made.reader->delay_ms = 50;
  std::vector<std::jthread> threads;
  std::atomic<int> num_right = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] { num_right += made.reads_right(kPage, 2 * kPage) ? 1 : 0; });
  }
  threads.clear();
  EXPECT_EQ(num_right, 8);
  EXPECT_EQ(made.reader->num_reads, 1);
}

TEST(ObjectCache, ARefusalIsToldToAllWhoWaitAndDoesNotLast) {
  Made made(4 * kPage, 8 * kPage);
  made.reader->delay_ms = 20;
  made.reader->fails = true;
  std::atomic<int> num_told = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      num_told += error_of([&] { made.object->hold(made.part(0, 1)); }) == "made: refused";
    });
  }
  threads.clear();
  EXPECT_EQ(num_told, 4);
  EXPECT_EQ(made.cache.num_bytes(), 0);
  made.reader->fails = false;
  EXPECT_TRUE(made.reads_right(0, 4 * kPage));
}

TEST(ObjectCache, ReadsInTheBackgroundAndEndsWithTasksThatWait) {
  std::atomic<int> num_done = 0;
  {
    Made made(100 * kPage, 200 * kPage);
    made.reader->delay_ms = 5;
    made.cache.in_background([] { fail(ErrorCode::kIo, "nobody is told"); });
    for (int64_t page = 0; page < 100; page += 2) {
      made.cache.in_background([&, object = made.object, part = made.part(page * kPage, 1)] {
        (void)object->hold(part);
        ++num_done;
      });
    }
    while (num_done < 5) std::this_thread::yield();
    EXPECT_TRUE(made.reads_right(0, 100));
  }
  EXPECT_LE(num_done, 50);
}

TEST(ObjectCache, ObjectsOfOneCacheShareItsLimit) {
  Made made(10 * kPage, 4 * kPage);
  {
    const auto other = made.cache.add(std::make_unique<MadeObject>(10 * kPage));
    (void)other->hold(other->bytes().first(4 * kPage));
    EXPECT_EQ(made.cache.num_bytes(), 4 * kPage);
    EXPECT_TRUE(made.reads_right(0, 2 * kPage));
    EXPECT_EQ(made.cache.num_bytes(), 4 * kPage);
  }
  EXPECT_EQ(made.cache.num_bytes(), 2 * kPage);
  EXPECT_TRUE(made.object->has(made.part(0, 2 * kPage)));
}

TEST(ObjectCache, AFolderThatIsNotThereIsRefused) {
  ObjectCache cache(kPage, "/no/such/folder");
  EXPECT_THAT(error_of([&] { cache.add(std::make_unique<MadeObject>(5)); }), HasSubstr("TMPDIR"));
}

// Every run has a cache, also where there is no folder for temporary files, and nothing to keep.
TEST(ObjectCache, NeedsNoFolderForNothing) {
  const char* former = std::getenv("TMPDIR");
  const std::string kept = former == nullptr ? "" : former;
  ::setenv("TMPDIR", "/nowhere/at/all", 1);
  EXPECT_EQ(ObjectCache().num_bytes(), 0);
  kept.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", kept.c_str(), 1);
}

}  // namespace
}  // namespace skein
