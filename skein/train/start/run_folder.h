// The files that a start writes into the run folder so that the run can be resumed from it alone,
// even after a move (docs/run_folder.md): config.toml, model.json and a copy of the tokenizer. Also
// removes the folder of a start that failed before it trained.
//
// Order    written after every check has passed, config.toml last: a folder without it never began
//          to train
// Errors   Error{kIo | kNoSpace} naming the path
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/config/config.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "skein/model/decoder.h"

namespace skein {

// The configuration to write as run.dir/config.toml. Paths inside the folder begin with
// {config_dir} and others are absolute, or as they were written with variables or ~; the tokenizer
// and the model are the folder's own copies.
Config config_of_run_folder(const Config& config);

// Writes all of the tokenizer's files or none, so that files of two tokenizers never mix.
void write_run_folder(const Config& config, const DecoderConfig& model, const Tokenizer& tokenizer);

// Throws Error{kUsage}, before anything is written, where other files in run.dir have the names of
// these copies.
void check_copies(const Config& config);

// Replaces the path of a tokenizer or model that no longer exists by the copy in run.dir, where
// there is one, unless `overrides` set the key. Of a run that has begun, a corpus that no longer
// exists is replaced by the file of the same name in run.dir or beside run.dir; that it holds the
// same text is checked with the checkpoint. Returns one sentence for each replacement. Throws
// Error{kUsage} for a corpus that is in none of these places.
std::vector<std::string> use_own_copies(Config& config, std::span<const std::string> overrides);

// One sentence where the configuration of a run begins another run, in a run.dir of its own, from
// new weights; else "".
std::string note_of_fork(const fs::path& config_file, std::span<const std::string> overrides,
                         const Config& config);

// Throws Error{kUsage} for a config.toml that lies in one run's folder but names another as
// run.dir: a run that an older version began, whose folder was moved since.
void check_own_folder(const fs::path& config_file, std::span<const std::string> overrides,
                      const Config& config);

// Records what existed before a start. The destructor removes what the start created, unless the
// run has begun to train.
class NewRunFolder {
 public:
  explicit NewRunFolder(const Config& config);
  NewRunFolder(const NewRunFolder&) = delete;
  NewRunFolder& operator=(const NewRunFolder&) = delete;
  ~NewRunFolder();

  bool has_begun() const;  // the run reached training, in this start or an earlier one
  // Called where an error message refers to the logs: the destructor then leaves them.
  void keep_logs() { keep_logs_ = true; }

 private:
  struct Made {
    fs::path folder;
    std::vector<fs::path> parents;  // that are missing, `folder` included; innermost first
  };
  static Made what_is_missing(const std::string& folder);
  static void remove_empty(const Made& made);
  void remove_checkpoint_folder() const;
  void remove_what_was_made() const;

  Made run_;
  Made checkpoints_;
  std::set<std::string> former_;  // names that were in run.dir before
  bool keep_logs_ = false;
};

}  // namespace skein
