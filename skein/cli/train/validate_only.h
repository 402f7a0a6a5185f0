// skein train --validate-only: the losses of all validation sets under the weights with which
// training would begin or go on, and nothing else.
//
// Weights  the newest good checkpoint of the run; where it has none what run.resume names,
//          model.init_from, or random ones
// Place    a folder of its own below TMPDIR, where its ranks meet and log, removed at the end: the
//          run folder is neither made nor changed
// Memory   as training, which it is but for the steps
// Errors   Error{kUsage}: no validation set; several machines, or ranks of a launcher
#pragma once

#include <optional>
#include <span>
#include <string>

#include "skein/config/config.h"
#include "skein/launch/place/rank_info.h"
#include "skein/train/loop/validation.h"

namespace skein {

class ValidationPlace {
 public:
  // `config`: as load_config gives it, with the tokenizer found. `launched`: by a launcher.
  ValidationPlace(const Config& config, const std::optional<RankInfo>& launched);
  ~ValidationPlace();
  ValidationPlace(const ValidationPlace&) = delete;
  ValidationPlace& operator=(const ValidationPlace&) = delete;

  const Config& config() const { return config_; }  // of the validation
  std::string config_file() const;                  // holds it, for other workers
  void keep() { keeps_ = true; }                    // where an error names a log in it

 private:
  Config config_;
  fs::path folder_;
  bool keeps_ = false;
};

// Prints them on standard output.
void print_validated(const std::string& weights, std::span<const Validated> sets, bool json);

}  // namespace skein
