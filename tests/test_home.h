// A home folder and a folder for temporary files of a test program's own, for itself and whatever
// it starts: nothing that it reads or keeps is the user's, and no test meets another one's files.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace skein {

class TestHome {
 public:
  TestHome() {
    std::string name = std::filesystem::path(testing::TempDir()) / "skein_home_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      std::fprintf(stderr, "no folder can be made in %s\n", testing::TempDir().c_str());
      std::exit(1);
    }
    path_ = name;
    // Tests that play another user get through.
    using std::filesystem::perms;
    std::filesystem::permissions(path_, perms::group_exec | perms::others_exec,
                                 std::filesystem::perm_options::add);
    // scripts/check_environment.sh: the user's own environment, whatever it is.
    const bool bare = std::getenv("SKEIN_TEST_BARE") != nullptr;
    if (!bare) setenv("HOME", path_.c_str(), 1);
    if (!bare) setenv("SKEIN_CACHE", (path_ / "cache").c_str(), 1);
    const std::filesystem::path temporary = path_ / "tmp";
    std::filesystem::create_directory(temporary);
    setenv("TEST_TMPDIR", temporary.c_str(), 1);  // testing::TempDir()
    if (!bare) setenv("TMPDIR", temporary.c_str(), 1);
  }
  TestHome(const TestHome&) = delete;
  TestHome& operator=(const TestHome&) = delete;
  ~TestHome() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace skein
