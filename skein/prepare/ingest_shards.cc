#include "skein/prepare/ingest_shards.h"

#include <algorithm>

#include "skein/base/error.h"

namespace skein {

fs::path shard_path(const fs::path& out, int64_t shard, int64_t num_shards) {
  return out / fmt::format("part-{:05}-of-{:05}.arrow", shard, num_shards);
}

std::vector<size_t> first_files(const std::vector<InputFile>& files, int64_t num_shards) {
  int64_t num_bytes = 0;
  for (const InputFile& file : files) num_bytes += file.num_bytes;
  const auto num_parts = static_cast<size_t>(num_shards);
  std::vector<size_t> first(num_parts, 0);
  size_t file = 0;
  int64_t before = 0;  // bytes of the files before `file`
  for (size_t shard = 1; shard < num_parts; ++shard) {
    const double wanted = static_cast<double>(num_bytes) * static_cast<double>(shard) /
                          static_cast<double>(num_parts);
    // A file belongs to the shard in which its middle lies; but each shard has one file at least.
    const size_t least = first[shard - 1] + 1, most = files.size() - (num_parts - shard);
    while (file < most && (file < least || static_cast<double>(before) +
                                                   static_cast<double>(files[file].num_bytes) / 2 <
                                               wanted)) {
      before += files[file++].num_bytes;
    }
    first[shard] = file;
  }
  return first;
}

void ingest_shards(const std::vector<fs::path>& inputs, const fs::path& out,
                   const IngestOptions& options, const ShardOptions& shards,
                   const std::function<void(const fs::path& shard, const IngestReport&)>& on_shard,
                   const std::function<void(const PiecesProgress&)>& on_progress) {
  if (!options.validation_out.empty()) {
    fail(ErrorCode::kUsage,
         "--validation-out with --shards: a document is held out by its index among all, which a "
         "machine that reads some of them does not know: ingest without --shards, or keep a shard "
         "for validation");
  }
  if (shards.machine < 0 || shards.machine >= shards.num_machines) {
    fail(ErrorCode::kUsage, "--shard-index {}/{}: expected i/n with i from 0 to n - 1",
         shards.machine, shards.num_machines);
  }
  if (inputs.empty()) fail(ErrorCode::kUsage, "nothing to ingest: expected files or folders");
  const FoundInputs found = find_inputs(inputs, {out});
  if (shards.num_shards < 1 || shards.num_shards > static_cast<int64_t>(found.files.size())) {
    fail(ErrorCode::kUsage, "--shards {}: there are {} files: expected 1 to as many shards",
         shards.num_shards, found.files.size());
  }
  std::vector<size_t> first = first_files(found.files, shards.num_shards);
  first.push_back(found.files.size());
  for (int64_t shard = shards.machine; shard < shards.num_shards; shard += shards.num_machines) {
    const auto begin = found.files.begin();
    const auto at = static_cast<size_t>(shard);
    FoundInputs part;
    part.files.assign(begin + static_cast<std::ptrdiff_t>(first[at]),
                      begin + static_cast<std::ptrdiff_t>(first[at + 1]));
    const bool is_first = shard == shards.machine;  // says what the walk found
    if (is_first) part.passed_over = found.passed_over;
    if (is_first) part.notes = found.notes;
    const fs::path path = shard_path(out, shard, shards.num_shards);
    on_shard(path, ingest(std::move(part), path, options, on_progress));
  }
}

}  // namespace skein
