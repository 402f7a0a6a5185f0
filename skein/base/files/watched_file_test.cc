#include "skein/base/files/watched_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "skein/base/error.h"
#include "tests/error_of.h"

namespace skein {
namespace {

class WatchedFileTest : public testing::Test {
 protected:
  WatchedFileTest() { fs::create_directories(folder); }
  ~WatchedFileTest() override { fs::remove_all(folder); }
  // In place, as `cat >` does.
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::in | std::ios::out | std::ios::trunc) << text;
  }
  fs::path made(const std::string& text) const {
    std::ofstream(file) << text;
    // A clock of the file system may tick every 4 ms.
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(1));
    return file;
  }

  const fs::path folder = fs::path(testing::TempDir()) / ("watched-" + std::to_string(::getpid()));
  const fs::path file = folder / "corpus.arrow";
};

TEST_F(WatchedFileTest, AFileThatIsOverwrittenIsNamed) {
  const WatchedFile watched(made("one text"));
  EXPECT_EQ(watched.check(), "");
  write(file, "the same");  // of the same size
  watched.note_read();
  const std::string told = test::error_of([&] { (void)watched.check(); });
  EXPECT_NE(told.find(file.string()), std::string::npos) << told;
  EXPECT_NE(told.find("changed while it was read"), std::string::npos) << told;
}

TEST_F(WatchedFileTest, AFileIsLookedAtOnceForAllThatWasRead) {
  const WatchedFile watched(made("one text"));
  EXPECT_EQ(watched.check(), "");
  write(file, "two texts");
  EXPECT_EQ(watched.check(), "");  // nothing was read since
}

TEST_F(WatchedFileTest, AnotherFileOfThatNameIsNoChange) {
  const WatchedFile watched(made("one text"));
  std::ofstream(folder / "other") << "another text";
  fs::rename(folder / "other", file);
  EXPECT_EQ(watched.check(), "was replaced by another file");
  fs::remove(file);
  watched.note_read();
  EXPECT_EQ(watched.check(), "was removed");
  EXPECT_EQ(watched.bytes().size(), 8u);
}

TEST_F(WatchedFileTest, AFileThatWasRenamedAndThenChangedIsChanged) {
  const WatchedFile watched(made("one text"));
  fs::rename(file, folder / "moved");
  write(folder / "moved", "the same");
  EXPECT_NE(test::error_of([&] { (void)watched.check(); }), "");
}

// Reading what was cut away is no signal: there are zeros, and it is told.
TEST_F(WatchedFileTest, AFileThatIsCutReadsAsZerosAndIsNamed) {
  const LostPages lost;
  const std::string text(1 << 16, 'x');
  {
    const WatchedFile watched(made(text));
    require_no_lost_pages();
    fs::resize_file(file, 5000);
    EXPECT_EQ(watched.bytes()[100], std::byte{'x'});
    EXPECT_EQ(watched.bytes()[60'000], std::byte{0});
    const std::string told = test::error_of([] { require_no_lost_pages(); });
    EXPECT_NE(told.find(file.string()), std::string::npos) << told;
    EXPECT_NE(told.find("it had 65536 bytes and has 5000"), std::string::npos) << told;
  }
  require_no_lost_pages();  // the file is not read any more
}

TEST_F(WatchedFileTest, OtherMemoryThatIsLostEndsTheProcess) {
  const auto read_other = [&] {
    const LostPages lost;
    const MappedFile other(made(std::string(1 << 16, 'x')));
    fs::resize_file(file, 0);
    volatile const std::byte* bytes = other.bytes().data();
    _exit(static_cast<int>(bytes[100]));
  };
  EXPECT_EXIT(read_other(), testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace skein
