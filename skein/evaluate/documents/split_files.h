// The files of a split in the folder of a data set.
//
// A split is a folder that `datasets` saved (state.json), or files whose names have the split's
// name as a word: test.jsonl, test-00000-of-00002.parquet, mmlu-test.arrow; here, or in data/.
// Where no name has it, other names of the split are tried, as `datasets` does: dev, val and valid
// are validation.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace skein {

// In order; none where there is no such split.
std::vector<std::filesystem::path> split_files(const std::filesystem::path& folder,
                                               const std::string& split);

// Whether the folder has files of documents, or folders that `datasets` saved.
bool has_splits(const std::filesystem::path& folder);

// What is there instead, for messages: "there are test, validation".
std::string split_names_text(const std::filesystem::path& folder);

// The folders in a folder, by name; none where it cannot be read.
std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder);

}  // namespace skein
