// A task file as one dict: its own keys over those of the files that it includes.
//
// `include` is a path, or a list of paths, relative to the file that has it. Of two included files
// the later overrides the earlier. `task_list` of an included file is left out, `include` is gone.
//
// Limits  32 files inside each other
// Errors  kInvalid, with the chain of files, for a file that includes itself, and for one that is
//         included twice, which lm-evaluation-harness refuses too; kNotFound; those of yaml_value.h
// Source  lm-evaluation-harness 0.4.13, tasks/_yaml_loader.py
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "skein/jinja/values/value.h"

namespace skein {

class TaskFiles {
 public:
  // A dict.
  jinja::Value read(const std::filesystem::path& file);

 private:
  struct Chain {
    std::vector<std::string> open;
    std::set<std::string> seen;
  };
  jinja::Value read(const std::filesystem::path& file, Chain& chain);
  const jinja::Value& parsed(const std::string& file);

  std::unordered_map<std::string, jinja::Value> parsed_;  // files are read once
};

}  // namespace skein
