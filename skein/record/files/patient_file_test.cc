// Appending to a file while the disk takes nothing, a part, or all. The limit on the size of files
// stands for the disk.
#include "skein/record/files/patient_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <span>

#include "skein/base/error.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using test::TempFolder;
using testing::HasSubstr;

FileDescriptor open_to_append(const fs::path& path) {
  return FileDescriptor(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
}

// No file of this process may become larger than `bytes`, while it lives.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : signal_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, signal_);
  }

 private:
  sighandler_t signal_;
  rlimit before_{};
};

TEST(PatientFile, LinesWaitUntilTheDiskTakesThem) {
  const TempFolder folder;
  const fs::path path = folder / "lines";
  PatientFile file(open_to_append(path), path, PatientFile::AfterATear::kLineAgain);
  {
    const FullDisk full(12);
    file.append("one\n");
    file.append("two, torn\n");
    file.append("three\n");
    EXPECT_EQ(read_file(path), "one\ntwo, tor");
    try {
      PatientFile(open_to_append(path), path, PatientFile::AfterATear::kRest).finish();
      file.finish();
      FAIL() << "nothing was said of what is missing";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(path.string()));
      EXPECT_THAT(error.what(), HasSubstr("File too large"));
      EXPECT_THAT(error.what(), HasSubstr("16 bytes are lost"));
    }
    file.append("two\n");
  }
  file.append("four\n");
  EXPECT_EQ(read_file(path), "one\ntwo, tor\ntwo\nfour\n");
}

TEST(PatientFile, TheRestOfATornRecordFollows) {
  const TempFolder folder;
  const fs::path path = folder / "records";
  {
    PatientFile file(open_to_append(path), path, PatientFile::AfterATear::kRest);
    {
      const FullDisk full(5);
      file.append("12345678");
      file.append("abc");
      EXPECT_EQ(read_file(path), "12345");
    }
    file.append("def");
    EXPECT_EQ(read_file(path), "12345678abcdef");
    const FullDisk full(16);
    file.append("ghi");
    EXPECT_EQ(read_file(path), "12345678abcdefgh");
    EXPECT_THROW(file.finish(), Error);
  }
  EXPECT_EQ(read_file(path), "12345678abcdefgh") << "an error has said that it is lost";
}

// Each call on the descriptor fails with ENOTCONN from here on, as on a file system in user space
// whose server has ended.
void cut_off(int fd) {
  const FileDescriptor unconnected(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::dup3(unconnected.get(), fd, O_CLOEXEC), fd);
}

TEST(PatientFile, IsOpenedAgainWhereItsDescriptorIsOfNoUse) {
  const TempFolder folder;
  const fs::path path = folder / "lines", away = folder / "away";
  FileDescriptor own = open_to_append(path), others = open_to_append(path);
  const int fd = own.get();
  PatientFile file(std::move(own), path, PatientFile::AfterATear::kLineAgain);
  file.append("one\n");
  write_all(others.get(), std::as_bytes(std::span("others\n", 7)), path);
  fs::rename(path, away);
  cut_off(fd);
  file.append("two\n");
  EXPECT_FALSE(fs::exists(path)) << "lines would lie where nobody looks for them";
  file.append("three\n");
  fs::rename(away, path);
  write_all(others.get(), std::as_bytes(std::span("two\nthr", 7)), path);  // it failed, and wrote
  file.append("four\n");
  EXPECT_EQ(read_file(path), "one\nothers\ntwo\nthr\nthree\nfour\n");
}

TEST(PatientFile, ALineIsNotPutBehindATornEndThatTheServerLeft) {
  const TempFolder folder;
  const fs::path path = folder / "lines";
  FileDescriptor own = open_to_append(path);
  const int fd = own.get();
  PatientFile file(std::move(own), path, PatientFile::AfterATear::kLineAgain);
  file.append("one\n");
  fs::resize_file(path, 2);  // what was written last is lost
  cut_off(fd);
  file.append("two\n");
  EXPECT_EQ(read_file(path), "on\ntwo\n");
}

TEST(PatientFile, ARecordGoesOnBehindWhatTheFileHasOfIt) {
  const TempFolder folder;
  const fs::path path = folder / "records";
  FileDescriptor own = open_to_append(path), server = open_to_append(path);
  const int fd = own.get();
  PatientFile file(std::move(own), path, PatientFile::AfterATear::kRest);
  file.append("1234");
  cut_off(fd);
  write_all(server.get(), std::as_bytes(std::span("56", 2)), path);
  file.append("5678");
  EXPECT_EQ(read_file(path), "12345678");
}

TEST(PatientFile, WhatWaitingCannotMendFailsAtOnce) {
  const TempFolder folder;
  const fs::path path = folder / "closed";
  open_to_append(path);
  FileDescriptor only_to_read(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  PatientFile file(std::move(only_to_read), path, PatientFile::AfterATear::kRest);
  EXPECT_THROW(file.append("x"), Error);
  PatientFile full(FileDescriptor(::open("/dev/full", O_WRONLY | O_CLOEXEC)), "/dev/full",
                   PatientFile::AfterATear::kRest);
  const std::string large(PatientFile::kMostWaiting / 2, 'x');
  full.append(large);
  full.append(large);
  EXPECT_THROW(full.append("x"), Error) << "waits without end";
}

}  // namespace
}  // namespace skein
