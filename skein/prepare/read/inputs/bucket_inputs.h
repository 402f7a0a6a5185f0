// The objects of a bucket that an ingestion reads, and the names that it shares with folders.
#pragma once

#include <vector>

#include "skein/objects/url.h"
#include "skein/prepare/read/inputs/inputs.h"

namespace skein {

// Of a folder that `datasets` saved.
inline constexpr const char* kStateFile = "state.json";
inline constexpr const char* kInfoFile = "dataset_info.json";
inline constexpr const char* kSplitsFile = "dataset_dict.json";

inline bool is_of_sources(const fs::path& path) { return path.extension() == ".sources"; }

// Adds the object of that name, or all that lie under it, as find_inputs does with files.
void find_objects(const ObjectUrl& url, const std::vector<fs::path>& excluded, FoundInputs& found);

}  // namespace skein
