#include "skein/base/files/open_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/watched_file.h"
#include "tests/error_of.h"
#include "tests/sanitizers.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using test::error_of;
using test::TempFolder;
using testing::AllOf;
using testing::HasSubstr;

class OpenFile : public testing::Test {
 protected:
  fs::path fifo(const std::string& name) const {
    const fs::path path = folder_ / name;
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return path;
  }
  fs::path file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  // A name that cannot be looked at, whoever looks: the failure is not that it is absent.
  fs::path endless_link(const std::string& name) const {
    fs::create_symlink(name, folder_ / name);
    return folder_ / name;
  }

  const TempFolder folder_;
};

TEST_F(OpenFile, WhatIsNoFileIsRefusedAtOnceAndNamedWithItsOwner) {
  const fs::path pipe = fifo("pipe"), socket = folder_ / "socket";
  const int end = ::socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  socket.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(end, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  const std::string owner = owner_text(::geteuid());
  const struct {
    fs::path path;
    std::string kind;
  } others[] = {{pipe, "a FIFO of " + owner},
                {socket, "a socket of " + owner},
                {folder_.path(), "a folder of " + owner},
                {"/dev/null", "a device of " + owner_text(0)}};
  for (const auto& other : others) {
    const fs::path& path = other.path;
    const auto expected = AllOf(HasSubstr(path.string() + " is not a regular file"),
                                HasSubstr("found " + other.kind));
    EXPECT_THAT(error_of([&] { open_to_read(path); }), expected);
    EXPECT_THAT(error_of([&] { read_file(path); }), expected);
    EXPECT_THAT(error_of([&] { const MappedFile map(path); }), expected);
    EXPECT_THAT(error_of([&] { const WatchedFile watched(path); }), expected);
    EXPECT_THAT(error_of([&] { read_file_if_there(path); }), expected);
  }
  EXPECT_THAT(error_of([&] { open_to_append(pipe); }), HasSubstr("a FIFO of " + owner));
  EXPECT_THAT(error_of([&] { open_lines(pipe, true); }), HasSubstr("a FIFO of " + owner));
  EXPECT_THAT(error_of([&] { open_to_change(pipe); }), HasSubstr("a FIFO of " + owner));
  EXPECT_THAT(error_of([&] { open_or_create(pipe); }), HasSubstr("a FIFO of " + owner));
  ::close(end);
}

TEST_F(OpenFile, OnlyWhatIsNotThereIsAbsent) {
  const fs::path text = file("text", "here");
  EXPECT_EQ(read_file_if_there(text), "here");
  EXPECT_EQ(read_file_if_there(folder_ / "none"), std::nullopt);
  EXPECT_EQ(read_file_if_there(folder_ / "none/none"), std::nullopt);
  EXPECT_EQ(read_file_if_there(text / "none"), std::nullopt);  // ENOTDIR
  EXPECT_FALSE(is_there(folder_ / "none"));
  EXPECT_FALSE(is_there(text / "none"));
  EXPECT_TRUE(is_there(text));
  EXPECT_FALSE(is_folder_there(text));
  const fs::path link = endless_link("link");
  EXPECT_THAT(error_of([&] { read_file_if_there(link); }), HasSubstr(link.string() + ": Too many"));
  EXPECT_THAT(error_of([&] { is_there(link); }), HasSubstr(link.string() + ": Too many"));
  EXPECT_THAT(error_of([&] { is_folder_there(link / "x"); }), HasSubstr("Too many"));
}

TEST_F(OpenFile, AProcessWithoutDescriptorsLeftFindsNothingAbsent) {
  if (kHasAddressSanitizer) GTEST_SKIP() << "the sanitizers open files of their own";
  const fs::path text = file("text", "here");
  struct rlimit former {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &former), 0);
  const struct rlimit none = {3, former.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string error = error_of([&] { open_if_there(text); });
  const std::string of_none = error_of([&] { open_if_there(folder_ / "none"); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &former), 0);
  EXPECT_THAT(error, HasSubstr("Too many open files"));
  EXPECT_THAT(of_none, HasSubstr("Too many open files"));
}

// A file that another user may not read is there all the same, and the error names its owner.
TEST_F(OpenFile, AFileOfAnotherUserIsNamedWithItsOwner) {
  if (::geteuid() != 0) return;  // only root may become another user
  fs::permissions(folder_.path(), fs::perms(0755));
  const fs::path text = file("text", "mine");
  fs::permissions(text, fs::perms(0600));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    const bool is_other = ::setegid(65534) == 0 && ::seteuid(65534) == 0;
    const std::string said = is_other ? error_of([&] { open_if_there(text); }) : "still root";
    ::_exit(::write(ends[1], said.data(), said.size()) < 0 ? 1 : 0);
  }
  ::close(ends[1]);
  char said[1000] = {};
  EXPECT_GT(::read(ends[0], said, sizeof(said) - 1), 0);
  ::close(ends[0]);
  ::waitpid(other, nullptr, 0);
  EXPECT_THAT(said, AllOf(HasSubstr("Permission denied"), HasSubstr("a file of root (0)")));
}

std::string all_of(const FileDescriptor& file) {
  std::string text;
  char part[100];
  for (ssize_t count = 1; count > 0; text.append(part, static_cast<size_t>(count))) {
    count = std::max<ssize_t>(0, ::read(file.get(), part, sizeof(part)));
  }
  return text;
}

TEST_F(OpenFile, AStreamThatAPersonNamesMayBeAPipeWhoseWriterComesLater) {
  const fs::path pipe = fifo("pipe");
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::ofstream(pipe) << "through the pipe";
  });
  EXPECT_EQ(all_of(open_stream(pipe)), "through the pipe");
  writer.join();
  EXPECT_EQ(all_of(open_stream(file("text", "a file"))), "a file");
  EXPECT_EQ(all_of(open_stream("/dev/null")), "");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "substituted", 11), 11);
  const FileDescriptor stream = open_stream(fmt::format("/dev/fd/{}", ends[0]));
  ::close(ends[1]);
  ::close(ends[0]);
  EXPECT_EQ(all_of(stream), "substituted");
  EXPECT_THAT(error_of([&] { open_stream(folder_.path()); }), HasSubstr("found a folder"));
}

TEST_F(OpenFile, AppendingGoesToFilesAndDevices) {
  const fs::path path = folder_ / "log";
  for (const char* text : {"one ", "two"}) {
    write_all(open_to_append(path).get(), std::as_bytes(std::span(std::string_view(text))), path);
  }
  EXPECT_EQ(read_file(path), "one two");
  EXPECT_EQ(error_of([&] { open_to_append("/dev/null"); }), "");
  EXPECT_EQ(error_of([&] { open_lines("/dev/full", false); }), "");
  EXPECT_THAT(error_of([&] { open_lines(folder_ / "none", false); }), HasSubstr("No such file"));
  EXPECT_FALSE(fs::exists(folder_ / "none"));
}

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

TEST_F(OpenFile, ModesAreThoseOfTheRuleWhateverTheUmask) {
  const mode_t former = ::umask(0);
  const fs::path data = folder_ / "data", log = folder_ / "log", own = folder_ / "own";
  create_new(data);
  open_to_append(log);
  create_new(own, 0600);
  write_file_atomic(folder_ / "atomic", "x");
  ::umask(027);
  create_new(folder_ / "masked");
  ::umask(former);
  EXPECT_EQ(mode_of(data), 0644u);
  EXPECT_EQ(mode_of(log), 0644u);
  EXPECT_EQ(mode_of(own), 0600u);
  EXPECT_EQ(mode_of(folder_ / "atomic"), 0644u);
  EXPECT_EQ(mode_of(folder_ / "masked"), 0640u);
  EXPECT_THAT(error_of([&] { create_new(data); }), HasSubstr("File exists"));
}

}  // namespace
}  // namespace skein
