#include "skein/base/files/paths.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "skein/base/error.h"

namespace skein {
namespace {

std::string refusal_of(const fs::path& path) {
  try {
    require_writable_folder(path, "run.dir");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "";
}

// Gives these tests a home folder of their own.
class Paths : public testing::Test {
 protected:
  Paths() {
    std::string name = testing::TempDir() + "/paths_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    folder_ = name;
    const char* home = std::getenv("HOME");
    former_home_ = home == nullptr ? "" : home;
    setenv("HOME", "/somewhere/me", 1);
  }
  ~Paths() override {
    setenv("HOME", former_home_.c_str(), 1);
    fs::remove_all(folder_);
  }
  fs::path folder_;
  std::string former_home_;
};

TEST_F(Paths, TheHomeFolderIsPutIn) {
  EXPECT_EQ(expand_home("~/runs/a", "run.dir"), "/somewhere/me/runs/a");
  EXPECT_EQ(expand_home("~", "run.dir"), "/somewhere/me");
  for (const char* other : {"", "runs/~", "./~", "/a/~/b", "auto"}) {
    EXPECT_EQ(expand_home(other, "run.dir"), other);
  }
  EXPECT_THROW(expand_home("~you/runs", "run.dir"), Error);
  unsetenv("HOME");
  EXPECT_THROW(expand_home("~/runs", "run.dir"), Error);
}

TEST_F(Paths, AFolderThatEvenRootCannotMake) {
  EXPECT_NE(refusal_of("/proc/checkpoints").find("run.dir is '/proc/checkpoints': cannot "),
            std::string::npos);
}

TEST_F(Paths, AFolderThatIsThereOrCanBeMade) {
  EXPECT_EQ(refusal_of(folder_), "");
  EXPECT_EQ(refusal_of(folder_ / "a/b/c"), "");
  EXPECT_EQ(refusal_of(folder_ / "a/"), "");
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_FALSE(fs::exists(folder_ / "a"));
}

TEST_F(Paths, AFileInItsPlaceOrInItsParents) {
  std::ofstream(folder_ / "file") << "x";
  for (const char* path : {"file", "file/", "file/run", "file/a/run"}) {
    const std::string refusal = refusal_of(folder_ / path);
    EXPECT_NE(refusal.find("run.dir is '"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("file is not a folder"), std::string::npos) << refusal;
  }
}

TEST_F(Paths, AReadOnlyFileSystem) {
  const std::string refusal = refusal_of("/proc/sys/kernel/runs/a");
  EXPECT_NE(refusal.find("cannot write in /proc/sys/kernel: "), std::string::npos) << refusal;
}

}  // namespace
}  // namespace skein
