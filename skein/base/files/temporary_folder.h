// A folder of its own in the system's place for temporary files, which goes away with all that is
// in it. Error{kIo} where it cannot be made.
#pragma once

#include <string>

namespace skein {

class TemporaryFolder {
 public:
  // `purpose`: a word of its name, for people who find it: "skein-PURPOSE-…".
  explicit TemporaryFolder(const std::string& purpose);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace skein
