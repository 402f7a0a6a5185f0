// The settings of a run as its config.toml has them, and where those of several runs differ.
//
// Rule     The file is read as TOML, not as a configuration of this version, so that runs of other
//          versions compare. A key is "section.key"; its value is the TOML text, a string without
//          its quotes. run.dir is left out: it differs always. The keys of model.json, which has
//          the sizes of a model that config.toml names as a file, are "model.json.KEY"
// Errors   none: a file that cannot be read is a note, and its run has no settings
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "skein/base/files/file.h"

namespace skein {

struct RunSettings {
  std::vector<std::pair<std::string, std::string>> values;  // in the order of the file
  std::string note;                                         // why there are none; "": there are

  const std::string* find(const std::string& key) const;
};

RunSettings read_settings(const fs::path& run_dir);

struct SettingDifference {
  std::string key;
  std::vector<std::optional<std::string>> values;  // of each run; nothing: it has no such key
};

// The keys whose values differ between two of the runs. A run with a note is not compared.
std::vector<SettingDifference> setting_differences(std::span<const RunSettings* const> runs);

}  // namespace skein
