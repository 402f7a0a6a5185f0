// An empty folder of a test's own, removed at its end.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace skein::test {

class TempFolder {
 public:
  // In memory where there is such a file system: for tests that sync thousands of times.
  enum class Where { kDisk, kMemory };
  explicit TempFolder(Where where = Where::kDisk) {
    const bool in_memory = where == Where::kMemory && ::access("/dev/shm", W_OK) == 0;
    std::string name = (in_memory ? "/dev/shm" : testing::TempDir()) + "/skein-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace skein::test
