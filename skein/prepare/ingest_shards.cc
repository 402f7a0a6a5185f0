#include "skein/prepare/ingest_shards.h"

#include <algorithm>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/json_text.h"
#include "skein/data/corpus/corpus_sources.h"
#include "skein/data/corpus/shard_set.h"
#include "skein/objects/store.h"
#include "skein/prepare/outputs.h"

namespace skein {
namespace {

constexpr const char* kStem = "part";

// What each shard says: the options, and the names as they were given and sizes, which all that
// divides them follows from. Not times, which may differ from one copy to another.
std::string list_of(const std::vector<InputFile>& files, int64_t num_shards,
                    const IngestOptions& options) {
  std::string list = std::to_string(num_shards) + json_text(text_options(options));
  int64_t num_bytes = 0;
  for (const InputFile& file : files) {
    num_bytes += file.num_bytes;
    list += '\0' + file.path.native() + '\0' + std::to_string(file.num_bytes);
  }
  return fmt::format("{} of {} files, {} bytes", xxh3_128_hex(std::as_bytes(std::span(list))),
                     files.size(), num_bytes);
}

std::vector<fs::path> shards_in(const Place& out) {
  const bool is_there =
      out.is_object() ? object_exists(*out.object()) : is_folder_there(out.path());
  std::vector<fs::path> shards = is_there ? files_in_folder(out.path()) : std::vector<fs::path>();
  std::erase_if(shards, [](const fs::path& file) {
    const auto name = shard_name(file);
    return !name || name->stem != kStem;
  });
  return shards;
}

bool is_made_before(const IngestReport& report) { return report.was_finished || report.was_made; }

int64_t documents_of(const fs::path& corpus) {
  const auto sources = CorpusSources::beside(corpus);
  return sources ? sources->num_documents() : 0;
}

[[noreturn]] void fail_without_text(const Place& out, int64_t num_shards,
                                    const IngestOptions& options, const std::string& warning) {
  fail(ErrorCode::kInvalid,
       "no text in any of the {} shards of {}: all their documents are {}, or their files hold "
       "none: expected some that stay{}",
       num_shards, out.text(), options.step.left_out, warning.empty() ? "" : "; " + warning);
}

}  // namespace

void check_shard_set(const Place& out, int64_t num_shards, const std::string& list) {
  const std::vector<fs::path> shards = shards_in(out);
  for (const fs::path& shard : shards) {
    if (shard_name(shard)->count == num_shards) continue;
    fail(ErrorCode::kUsage,
         "--out {} --shards {}: holds {}, of another division of documents: expected a folder "
         "without it; name another, or remove those shards",
         out.text(), num_shards, shard.filename().string());
  }
  if (list.empty()) return;
  for (const ShardList& shard : shard_lists(shards)) {
    if (shard.of.empty() || shard.of == list) continue;
    fail(ErrorCode::kUsage,
         "--out {}: holds {} of another list of inputs, or made with other options ({}), than this "
         "one ({}), so that files would be in two shards, or in none: expected the same names, "
         "sizes and options on every machine; --overwrite on every machine makes all shards again",
         out.text(), shard.shard.filename().string(), shard.of, list);
  }
}

fs::path shard_path(const fs::path& out, int64_t shard, int64_t num_shards) {
  return out / fmt::format("{}-{:05}-of-{:05}.arrow", kStem, shard, num_shards);
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

void ingest_shards(const std::vector<fs::path>& inputs, const Place& out,
                   const IngestOptions& options, const ShardOptions& shards,
                   const std::function<void(const fs::path& shard, const IngestReport&)>& on_shard,
                   const std::function<void(const PiecesProgress&)>& on_progress) {
  if (options.validation_out.is_named()) {
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
  std::vector<fs::path> excluded = {out.path(), output_of(out, options.work).made};
  for (const Place& place : options.also_written) excluded.push_back(place.path());
  const FoundInputs found = find_inputs(inputs, excluded);
  if (shards.num_shards < 1 || shards.num_shards > static_cast<int64_t>(found.files.size())) {
    fail(ErrorCode::kUsage, "--shards {}: there are {} files: expected 1 to as many shards",
         shards.num_shards, found.files.size());
  }
  check_shards_of_inputs(found.files);
  check_separator(read_options(options), found.files);
  IngestOptions of_shard = options;
  of_shard.shard_of = list_of(found.files, shards.num_shards, options);
  check_shard_set(out, shards.num_shards, options.overwrite ? "" : of_shard.shard_of);
  std::vector<size_t> first = first_files(found.files, shards.num_shards);
  first.push_back(found.files.size());
  bool has_text = false;
  std::string warning;
  for (int64_t shard = shards.machine; shard < shards.num_shards; shard += shards.num_machines) {
    const auto begin = found.files.begin();
    const auto at = static_cast<size_t>(shard);
    FoundInputs part;
    part.files.assign(begin + static_cast<std::ptrdiff_t>(first[at]),
                      begin + static_cast<std::ptrdiff_t>(first[at + 1]));
    const bool is_first = shard == shards.machine;  // says what the walk found
    if (is_first) part.passed_over = found.passed_over;
    if (is_first) part.notes = found.notes;
    const fs::path path = shard_path(out.path(), shard, shards.num_shards);
    const IngestReport report = ingest(std::move(part), path, of_shard, on_progress);
    if (!report.warnings.empty() && warning.empty()) warning = report.warnings.front();
    has_text = has_text || (is_made_before(report) ? documents_of(path) : report.num_documents) > 0;
    on_shard(path, report);
  }
  // Of one machine of several it is no error, since others may have text.
  if (!has_text && shards.num_machines == 1) {
    fail_without_text(out, shards.num_shards, options, warning);
  }
}

}  // namespace skein
