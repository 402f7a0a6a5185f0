#include "skein/base/shared/own_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "skein/base/files/open_file.h"
#include "tests/error_of.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

class OwnFile : public testing::Test {
 protected:
  std::string refusal() const {
    return error_of([&] { OwnFolder({place_.path()}); });
  }

  const test::TempFolder place_;
  const fs::path path_ = place_ / fmt::format("skein-{}", ::geteuid());
};

TEST_F(OwnFile, IsOfThisUserAloneWhateverTheUmask) {
  const mode_t former = ::umask(0277);
  const OwnFolder folder({place_.path()});
  const FileDescriptor file = folder.open("lock");
  ::umask(former);
  EXPECT_EQ(folder.path(), path_);
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0700));
  EXPECT_EQ(fs::status(path_ / "lock").permissions() & fs::perms(0077), fs::perms::none);
  EXPECT_TRUE(folder.still_names("lock", file));
  const OwnFolder again({place_.path()});
  EXPECT_TRUE(again.still_names("lock", file));
  again.remove("lock");
  EXPECT_FALSE(folder.still_names("lock", file));
  folder.remove("lock");  // which is no error
}

TEST_F(OwnFile, APlaceThatCannotBeWrittenToIsPassedOver) {
  EXPECT_EQ(OwnFolder({"/proc", place_ / "none", place_.path()}).path(), path_);
  EXPECT_THAT(error_of([] { OwnFolder({"/proc"}); }),
              AllOf(HasSubstr("tried /proc ("), HasSubstr("TMPDIR")));
}

TEST_F(OwnFile, AFolderThatOthersCanWriteToIsRefused) {
  fs::create_directory(path_);
  fs::permissions(path_, fs::perms(0777));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("others can write to " + path_.string()),
                               HasSubstr("mode 0777"), HasSubstr("rm -r " + path_.string())));
}

TEST_F(OwnFile, WhatIsNoFolderIsNamedWithItsOwner) {
  const std::string owner = owner_text(::geteuid());
  ASSERT_EQ(::mkfifo(path_.c_str(), 0666), 0);
  EXPECT_THAT(refusal(), HasSubstr("is a FIFO of " + owner + ": expected a folder"));
  fs::remove(path_);
  fs::create_directory(place_ / "elsewhere");
  fs::create_symlink(place_ / "elsewhere", path_);
  EXPECT_THAT(refusal(), HasSubstr("is a symbolic link of " + owner + ": expected a folder"));
  EXPECT_TRUE(fs::is_empty(place_ / "elsewhere"));
}

TEST_F(OwnFile, AFolderOfSomebodyElseIsNamedWithItsOwner) {
  if (::geteuid() != 0) return;  // only root gives files away
  fs::create_directory(path_);
  fs::permissions(path_, fs::perms(0700));
  ASSERT_EQ(::chown(path_.c_str(), 1234, 1234), 0);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("is a folder of " + owner_text(1234)),
                               HasSubstr("nothing of it is used")));
}

TEST_F(OwnFile, AFileThatIsNotOursAloneIsRefused) {
  const OwnFolder folder({place_.path()});
  const auto refused = [&](const char* name) { return error_of([&] { folder.open(name); }); };
  ASSERT_EQ(::mkfifo((path_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refused("pipe"), HasSubstr("is a FIFO of"));
  std::ofstream(path_ / "open") << "text";
  fs::permissions(path_ / "open", fs::perms(0666));
  EXPECT_THAT(refused("open"), HasSubstr("with mode 0666"));
  fs::permissions(path_ / "open", fs::perms(0600));
  EXPECT_EQ(refused("open"), "");
  fs::create_hard_link(path_ / "open", place_ / "second");
  EXPECT_THAT(refused("open"), HasSubstr("and 2 names"));
  fs::create_symlink(place_ / "second", path_ / "link");
  EXPECT_THAT(refused("link"), HasSubstr("it is a symbolic link of"));
  if (::geteuid() != 0) return;
  folder.open("given");
  ASSERT_EQ(::chown((path_ / "given").c_str(), 1234, 1234), 0);
  EXPECT_THAT(refused("given"), HasSubstr("is a file of " + owner_text(1234)));
}

}  // namespace
}  // namespace skein
