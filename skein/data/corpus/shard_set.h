// The shards of one corpus: files whose names count (part-00003-of-00016.arrow), each of which says
// of which list of inputs it is a part.
//
// Format   docs/corpus_format.md: the key `skein.shard_of` of a corpus's schema. Machines that see
//          different lists, or have other options, divide them differently, so that documents are
//          in two shards, or in none
// Errors   Error{kInvalid} naming the folder and the shards: some are missing, are of two sets of
//          the same name, or of different lists. Shards that say nothing agree with all
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "skein/base/files/file.h"

namespace arrow {
class Schema;
}

namespace skein {

inline constexpr const char* kShardOf = "skein.shard_of";

// "<stem>-00003-of-00016.arrow"
struct ShardName {
  std::string stem;
  int64_t index = 0;
  int64_t count = 0;
};
std::optional<ShardName> shard_name(const fs::path& path);

// The list of inputs that a shard says it is of; empty: it does not say.
std::string shard_of(const arrow::Schema& schema);
// The same of a file or an object. Reads its first bytes; of what is no corpus nothing.
std::string shard_of(const fs::path& corpus);

struct ShardList {
  fs::path shard;
  std::string of;  // shard_of()
};
std::vector<ShardList> shard_lists(const std::vector<fs::path>& shards);

// The *.arrow files of a folder, or right under a name in a store, in the order of their names.
// Hidden ones and folders inside are left out. Of an object's own name, the object.
std::vector<fs::path> files_in_folder(const fs::path& folder);

// Of the files of one folder: every set is whole, and the only one of its name.
void check_shard_names(const fs::path& folder, const std::vector<fs::path>& files);

// All shards of each set are of one list of inputs.
void check_shard_lists(const fs::path& folder, const std::vector<ShardList>& shards);

// Both, for every folder of these *.arrow files, which were found in it.
void check_shards(const std::vector<fs::path>& files);

}  // namespace skein
