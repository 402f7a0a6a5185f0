// What a start leaves in a run folder so that the run can go on from it alone, wherever it is moved
// (docs/run_folder.md): config.toml, model.json and a copy of the tokenizer. And the folder of a
// start that never came to train, which is taken away again.
//
// Order    written when everything that can be refused was accepted, config.toml last: a folder
//          without one never began to train
// Errors   Error{kIo | kNoSpace} naming the path
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "skein/base/file.h"
#include "skein/config/config.h"
#include "skein/data/tokenizer.h"
#include "skein/model/decoder.h"

namespace skein {

// The configuration as it stands in run.dir/config.toml: what the folder holds is named from
// {config_dir}, everything else by absolute paths; the tokenizer and the model are its own copies.
Config config_of_run_folder(const Config& config);

// The tokenizer's files go in together or not at all: two tokenizers are never mixed.
void write_run_folder(const Config& config, const DecoderConfig& model, const Tokenizer& tokenizer);

// Refuses (kUsage), before anything is written, a run.dir where other people's files have the names
// of these copies.
void check_copies(const Config& config);

// Where the tokenizer, or what says the model, is gone, and an earlier start left a copy in
// run.dir: takes the copy, but for what `overrides` names. One sentence each about what was taken.
std::vector<std::string> use_own_copies(Config& config, std::span<const std::string> overrides);

// Refuses (kUsage) a config.toml that lies in one run's folder and names another: a run that an
// older version began, and that was moved since.
void check_own_folder(const fs::path& config_file, std::span<const std::string> overrides,
                      const Config& config);

// What there was before a start; when it goes, and the run has never begun to train, what the start
// made is removed again.
class NewRunFolder {
 public:
  explicit NewRunFolder(const Config& config);
  NewRunFolder(const NewRunFolder&) = delete;
  NewRunFolder& operator=(const NewRunFolder&) = delete;
  ~NewRunFolder();

  bool has_begun() const;  // the run came to train, now or in an earlier start
  // Where a message sends its reader to the logs, they stay.
  void keep_logs() { keep_logs_ = true; }

 private:
  struct Made {
    fs::path folder;
    std::vector<fs::path> parents;  // and itself, where they were not there; innermost first
  };
  static Made what_is_missing(const std::string& folder);
  static void remove_empty(const Made& made);
  void remove_checkpoint_folder() const;
  void remove_what_was_made() const;

  Made run_;
  Made checkpoints_;
  std::set<std::string> former_;  // names in run.dir
  bool keep_logs_ = false;
};

}  // namespace skein
