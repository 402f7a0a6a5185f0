// The files of results in a folder: FOLDER/MODEL/results_DATE.json and samples_TASK_DATE.jsonl.
//
// Errors  Error{kIo | kNoSpace} of the file that cannot be written
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/evaluate/results/evaluation.h"

namespace skein {

// `json`: results_json(). Returns the files that were written, the results first.
std::vector<std::filesystem::path> write_results(const std::filesystem::path& folder,
                                                 const std::string& model,
                                                 const Evaluation& evaluation,
                                                 const OrderedJson& json, double date);

// The newest results of each checkpoint, by its checksum (skein.run.checkpoint), in the folder of
// the model, for which the same was asked (skein.asked): what need not be done again. A file that
// cannot be read counts as none.
std::map<std::string, Json> known_results(const std::filesystem::path& folder,
                                          const std::string& model, const Json& asked);

}  // namespace skein
