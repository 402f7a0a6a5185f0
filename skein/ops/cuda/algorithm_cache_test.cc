// How algorithms are chosen, kept and found again.
#include "skein/ops/cuda/algorithm_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "skein/base/error.h"
#include "skein/ops/cuda/library_cuda.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using cuda::AlgorithmCache;
using test::TempFolder;

AlgorithmCache::Choice no_choice() { throw std::logic_error("chooses again"); }

TEST(AlgorithmCache, FindsWhatAnotherProcessChose) {
  const TempFolder folder;
  const fs::path file = folder.path() / "new" / "choices.jsonl";
  const std::string bytes("\0\xff\n\"x", 5);
  AlgorithmCache other(file);  // that has read it too early
  EXPECT_FALSE(other.find("key"));
  {
    AlgorithmCache cache(file);
    EXPECT_EQ(cache.find_or_choose("key",
                                   [&] {
                                     return AlgorithmCache::Choice{bytes, 2.5};
                                   })
                  ->algorithm,
              bytes);
  }
  EXPECT_EQ(other.find_or_choose("key", no_choice)->algorithm, bytes);
  const AlgorithmCache later(file);
  ASSERT_TRUE(later.find("key"));
  EXPECT_EQ(later.find("key")->algorithm, bytes);
  EXPECT_EQ(later.find("key")->microseconds, 2.5);
  EXPECT_FALSE(later.find("another key"));
}

TEST(AlgorithmCache, IgnoresWhatIsDamaged) {
  const TempFolder folder;
  const fs::path file = folder.path() / "choices.jsonl";
  const auto choose = [](std::string bytes) {
    return [=] { return AlgorithmCache::Choice{bytes, 1}; };
  };
  AlgorithmCache(file).find_or_choose("good", choose("abc"));
  AlgorithmCache(file).find_or_choose("flipped", choose("abc"));
  std::string text = read_file(file);
  text[text.rfind("616263")] = '7';
  text = "{\"key\": 3}\n[]\n\n\xfe\n" + text + "{\"key\": \"torn\", \"algor";
  std::ofstream(file) << text;

  AlgorithmCache cache(file);
  EXPECT_TRUE(cache.find("good"));
  EXPECT_FALSE(cache.find("flipped"));
  EXPECT_TRUE(cache.find_or_choose("flipped", choose("new")));
  EXPECT_EQ(AlgorithmCache(file).find("flipped")->algorithm, "new");
  EXPECT_TRUE(AlgorithmCache(file).find("good"));
  fs::remove(file);
  EXPECT_TRUE(cache.find_or_choose("after it was deleted", choose("x")));
  EXPECT_TRUE(AlgorithmCache(file).find("after it was deleted"));
}

TEST(AlgorithmCache, ChoosesNothingThatItCannotKeep) {
  EXPECT_FALSE(AlgorithmCache("/proc/none/choices.jsonl").find_or_choose("key", no_choice));
  EXPECT_FALSE(AlgorithmCache({}).find_or_choose("key", no_choice));
}

TEST(AlgorithmCache, LetsOneChooseForAll) {
  const TempFolder folder;
  const fs::path file = folder.path() / "choices.jsonl";
  std::atomic<int> chosen = 0;
  std::vector<std::string> results(4);
  std::vector<std::thread> threads;
  for (std::string& result : results) {
    threads.emplace_back([&] {
      AlgorithmCache cache(file);
      result = cache
                   .find_or_choose("key",
                                   [&] {
                                     std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                     return AlgorithmCache::Choice{std::to_string(++chosen), 1};
                                   })
                   ->algorithm;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(chosen, 1);
  EXPECT_EQ(results, std::vector<std::string>(4, "1"));
}

TEST(Library, SaysWhatIsMissing) {
  cuda::Library library("a thing", "libskein_thing.so", 7, "install it");
  try {
    library.symbol("function");
    FAIL() << "it is there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_EQ(std::string(error.what()),
              "a GPU needs a thing, which does not load (libskein_thing.so.7: cannot open shared "
              "object file: No such file or directory): install it");
  }
  cuda::Library without("the C library", "libc.so", 6, "install it");
  EXPECT_NE(without.symbol("malloc"), nullptr);
  EXPECT_THROW(without.symbol("no_such_function"), Error);
}

}  // namespace
}  // namespace skein
