// The files in a folder that an ingestion reads: inputs.h says which.
#pragma once

#include <string>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/prepare/read/inputs/inputs.h"

namespace skein {

// What is at the path, behind links. Error{kIo} where it cannot be asked.
fs::file_status status_of(const fs::path& path);

class Walk {
 public:
  Walk(FoundInputs& found, const std::vector<fs::path>& excluded);

  // Adds the files of a folder.
  void folder(const fs::path& top);

 private:
  void walk(const fs::path& folder);
  void hub_cache(const fs::path& folder, const std::vector<fs::path>& entries);
  void visit(const fs::path& path);
  void visit_file(const fs::path& path);
  bool saved_dataset(const fs::path& folder, const std::vector<fs::path>& entries);
  void leave_out_cards(size_t first);
  void pass_over(std::string line) { found_.passed_over.push_back(std::move(line)); }

  FoundInputs& found_;
  std::vector<fs::path> excluded_;
  int64_t num_hidden_ = 0;
};

}  // namespace skein
