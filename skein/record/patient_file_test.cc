// Appending to a file while the disk takes nothing, a part, or all. The limit on the size of files
// stands for the disk.
#include "skein/record/patient_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

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
