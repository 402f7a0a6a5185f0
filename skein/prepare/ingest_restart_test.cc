// Ingestions that are killed, and shards.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "skein/prepare/ingest_shards.h"
#include "tests/data/ingest_testing.h"

namespace skein {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

class IngestRestart : public Ingest {
 protected:
  // Files that are a piece each: most of their bytes are blank lines.
  void write_inputs(int num_files) {
    for (int file = 0; file < num_files; ++file) {
      std::string lines;
      for (int i = 0; i < 3000; ++i) {
        lines += fmt::format("{{\"text\": \"document {} of file {}\"}}\n", i * 7919, file);
      }
      write(fmt::format("in/{}.jsonl", file), lines + std::string(33 << 20, '\n'));
    }
  }
  void expect_same_bytes_when_killed(const IngestOptions& options,
                                     const std::vector<std::string>& names);
};

void IngestRestart::expect_same_bytes_when_killed(const IngestOptions& options,
                                                  const std::vector<std::string>& names) {
  write_inputs(6);
  ingest({folder_ / "in"}, out(), options);
  std::vector<std::string> wanted;
  for (const std::string& name : names) {
    wanted.push_back(read_file(folder_ / name));
    fs::remove(folder_ / name);
  }
  int num_killed = 0;
  for (int milliseconds = 5; milliseconds < 500; milliseconds += milliseconds / 2 + 1) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        ingest({folder_ / "in"}, out(), options);
      } catch (...) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    num_killed += WIFSIGNALED(status) ? 1 : 0;
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
  }
  EXPECT_GT(num_killed, 0);
  ingest({folder_ / "in"}, out(), options);
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(read_file(folder_ / names[i]), wanted[i]) << names[i];
  }
  EXPECT_FALSE(fs::exists(work_folder_of(out())));
  EXPECT_TRUE(ingest({folder_ / "in"}, out(), options).was_finished);
}

TEST_F(IngestRestart, KilledAtAnyTimeItEndsWithTheSameBytes) {
  expect_same_bytes_when_killed({}, {"out.arrow", "out.arrow.sources"});
}

TEST_F(IngestRestart, KilledAtAnyTimeWithAHoldOutItEndsWithTheSameBytes) {
  expect_same_bytes_when_killed(
      {.validation_out = folder_ / "val.arrow"},
      {"out.arrow", "out.arrow.sources", "val.arrow", "val.arrow.sources"});
}

// Both are there, or the one that is not is made, as after a kill between them.
TEST_F(IngestRestart, GoesOnBehindEachOutput) {
  const fs::path val = folder_ / "val.arrow";
  const IngestOptions options{.validation_out = val, .validation_fraction = 0.3};
  for (int i = 0; i < 40; ++i) write(fmt::format("in/{}.txt", i), std::to_string(i));
  ingest({folder_ / "in"}, out(), options);
  const std::string both = read_file(out()) + read_file(val);
  for (const fs::path& missing : {out(), val}) {
    fs::remove(missing);
    EXPECT_FALSE(ingest({folder_ / "in"}, out(), options).was_finished) << missing;
    EXPECT_EQ(read_file(out()) + read_file(val), both) << missing;
    EXPECT_TRUE(ingest({folder_ / "in"}, out(), options).was_finished);
  }
  fs::remove(out());
  write("in/new.txt", "new");
  EXPECT_THAT(test::error_of([&] { ingest({folder_ / "in"}, out(), options); }),
              HasSubstr("val.arrow: exists, made of other inputs"));
}

// Whenever it is killed, a corpus that is there and passes for finished is the new one.
TEST_F(IngestRestart, KilledWhileItReplacesACorpus) {
  const Documents former = ingested({write("former.txt", "the former text")});
  std::string lines;
  for (int i = 0; i < 300'000; ++i) lines += fmt::format("{{\"text\": \"new {}\"}}\n", i);
  const fs::path input = write("new.jsonl", lines);
  int num_finished = 0;
  for (int milliseconds = 20; num_finished == 0; milliseconds += 1 + milliseconds / 12) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      test::error_of([&] { ingest({input}, out(), {.overwrite = true}); });
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    if (fs::exists(out()) && documents(out()) == former) {
      EXPECT_THAT(test::error_of([&] { ingest({input}, out(), {}); }),
                  HasSubstr("exists, made of"));
    } else {
      num_finished += ingest({input}, out(), {}).was_finished ? 1 : 0;
      EXPECT_EQ(documents(out()).size(), 300'000u);
      fs::remove(out());
      if (num_finished == 0) ingested({folder_ / "former.txt"});
    }
  }
}

TEST_F(IngestRestart, TheBytesDoNotDependOnThreads) {
  write_inputs(7);
  std::string wanted;
  for (const int num_threads : {1, 2, 8}) {
    ingest({folder_ / "in"}, out(), {.overwrite = true, .num_threads = num_threads});
    if (num_threads == 1) wanted = read_file(out());
    EXPECT_EQ(read_file(out()), wanted) << num_threads;
  }
  EXPECT_EQ(documents(out()).size(), 21'000u);
}

TEST_F(IngestRestart, AnErrorIsMendedAndTheRestIsTaken) {
  write_inputs(2);
  write("in/z.jsonl", "bad");
  const std::string error = test::error_of([&] { ingest({folder_ / "in"}, out(), {}); });
  EXPECT_THAT(error, HasSubstr("z.jsonl:1: not JSON"));
  EXPECT_THAT(error, HasSubstr("2 of 3 pieces are finished and stay in"));
  write("in/z.jsonl", "{\"text\": \"good\"}");
  const IngestReport report = ingest({folder_ / "in"}, out(), {});
  EXPECT_THAT(report.restart, ElementsAre(HasSubstr("2 of 3 pieces were finished before")));
  EXPECT_EQ(report.num_documents, 6001);
}

TEST_F(IngestRestart, ShardsAreTheCorpusInParts) {
  for (int i = 0; i < 9; ++i) write(fmt::format("in/{}.txt", i), std::string(1 + i * 10, 'a' + i));
  const Documents whole = ingested({folder_ / "in"});
  const fs::path shards = folder_ / "shards";
  for (const int64_t num_machines : {1, 2}) {
    fs::remove_all(shards);
    std::vector<std::string> made;
    for (int64_t machine = 0; machine < num_machines; ++machine) {
      ingest_shards({folder_ / "in"}, shards, {}, {4, machine, num_machines},
                    [&](const fs::path& path, const IngestReport&) { made.push_back(path); });
    }
    ASSERT_EQ(made.size(), 4u);
    std::sort(made.begin(), made.end());
    Documents all;
    for (const std::string& path : made) {
      const Documents part = documents(path);
      EXPECT_FALSE(part.empty());
      all.insert(all.end(), part.begin(), part.end());
    }
    EXPECT_EQ(all, whole);
  }
  int num_finished = 0;
  ingest_shards({folder_ / "in"}, shards, {}, {4},
                [&](const fs::path&, const IngestReport& r) { num_finished += r.was_finished; });
  EXPECT_EQ(num_finished, 4);
  EXPECT_THAT(
      test::error_of([&] { ingest_shards({folder_ / "in"}, shards, {}, {10}, [](auto&&...) {}); }),
      HasSubstr("--shards 10: there are 9 files"));
}

TEST_F(IngestRestart, ShardsAreEven) {
  std::vector<InputFile> files(100);
  for (size_t i = 0; i < files.size(); ++i) files[i].num_bytes = 50 + static_cast<int64_t>(i % 7);
  EXPECT_THAT(first_files(files, 4), ElementsAre(0u, 25u, 50u, 75u));
  files[0].num_bytes = 1'000'000;  // each shard has a file, whatever their sizes
  EXPECT_THAT(first_files(files, 4), ElementsAre(0u, 1u, 2u, 3u));
  files[0].num_bytes = 0;
  files[99].num_bytes = 1'000'000;
  EXPECT_EQ(first_files(files, 100).back(), 99u);
}

TEST_F(IngestRestart, TooManyInvalidLinesAreAnError) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += i % 5 == 0 ? "bad\n" : "{\"text\": \"good\"}\n";
  const fs::path input = write("a.jsonl", lines);
  EXPECT_THAT(error_of({input}, {.skip_invalid_lines = true}),
              HasSubstr("200 of 1000 lines are not valid, a share of 0.2000"));
  IngestOptions options{.skip_invalid_lines = true};
  options.max_invalid_lines = 0.2;
  EXPECT_EQ(ingested({input}, options).size(), 800u);
}

TEST_F(IngestRestart, TextThatIsNotUtf8GoesByThePolicy) {
  const std::string lines = "{\"text\": \"caf\xe9\"}\n{\"text\": \"good\"}\n";
  for (const auto& [name, bytes] : {std::pair<std::string, std::string>("a.jsonl", lines),
                                    {"a.json", "[{\"text\": \"caf\xe9\"}, {\"text\": \"good\"}]"},
                                    {"b.jsonl", "{\"text\": \"caf\\udce9\"}\n{\"text\": \"good\"}"},
                                    {"a.csv", "text\ncaf\xe9\ngood\n"}}) {
    const fs::path input = write(name, bytes);
    IngestOptions options;
    EXPECT_THAT(error_of({input}, options), AnyOf(HasSubstr("UTF-8"), HasSubstr("not JSON")))
        << name;
    options.invalid_utf8 = InvalidUtf8::kReplace;
    EXPECT_EQ(ingested({input}, options), (Documents{"caf\uFFFD", "good"})) << name;
    EXPECT_EQ(report_.num_invalid_utf8, 1);
    options.invalid_utf8 = InvalidUtf8::kSkip;
    EXPECT_EQ(ingested({input}, options), Documents{"good"}) << name;
    EXPECT_EQ(report_.num_invalid_utf8, 1);
  }
}

TEST_F(IngestRestart, ACompressionBombIsRefused) {
  std::string blank;
  while (blank.size() < 64 << 20) blank += std::string(1 << 20, ' ') + "\n";
  const std::string frame = zstd(blank);
  std::string bomb;
  for (int i = 0; i < 20; ++i) bomb += frame;  // 1.25 GiB of blank lines
  const fs::path input = write("bomb.jsonl.zst", bomb + zstd("{\"text\": \"x\"}"));
  EXPECT_THAT(error_of({input}), HasSubstr("a compression bomb?"));
  IngestOptions options;
  options.max_expansion = 0;
  EXPECT_EQ(ingested({input}, options), Documents{"x"});
}

}  // namespace
}  // namespace skein
