#include "skein/prepare/read/inputs/walk.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/files/lfs_pointer.h"
#include "skein/base/text/json.h"
#include "skein/prepare/read/bytes/foreign_files.h"
#include "skein/prepare/read/inputs/bucket_inputs.h"
#include "skein/prepare/read/inputs/input_format.h"

namespace skein {
namespace {

[[noreturn]] void fail_read(const fs::path& path, const std::error_code& error) {
  fail(errno_code(error.value()), "cannot read {}: {}", path.string(), errno_text(error.value()));
}

bool is_file(const fs::path& path) { return fs::is_regular_file(status_of(path)); }

fs::path real_path(const fs::path& path) {
  std::error_code error;
  fs::path result = fs::weakly_canonical(path, error);
  return error ? fs::absolute(path) : result;
}

[[noreturn]] void fail_splits(const fs::path& folder) {
  std::string splits;
  const Json json = read_json((folder / kSplitsFile).string());
  if (json.is_object() && json.contains("splits") && json["splits"].is_array()) {
    for (const Json& split : json["splits"]) {
      if (!split.is_string()) continue;
      splits += (splits.empty() ? "" : ", ") + (folder / split.get<std::string>()).string();
    }
  }
  fail(
      ErrorCode::kUsage,
      "{}: a saved DatasetDict, whose splits would be mixed: expected one of them ({}); the others "
      "can be a validation corpus of their own",
      folder.string(), splits.empty() ? "it lists none" : splits);
}

bool is_real_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

bool is_hub_cache(const fs::path& folder) {
  return is_real_folder(folder / "blobs") && is_real_folder(folder / "snapshots") &&
         is_real_folder(folder / "refs");
}

bool is_card(const fs::path& path) {
  const fs::path snapshots = path.parent_path().parent_path();
  return path.filename() == "README.md" && snapshots.filename() == "snapshots" &&
         is_hub_cache(snapshots.parent_path());
}

// A README.md that begins with what the Hugging Face Hub keeps of a data set, between two
// lines ---.
bool begins_as_card(const fs::path& path) {
  constexpr int64_t kMostBytes = int64_t{4} << 20;
  if (path.filename() != "README.md") return false;
  Result<std::string> text = try_run([&] { return read_file(path, kMostBytes); });
  if (!text.ok()) return false;
  std::string card = std::move(text).value();
  card.erase(std::remove(card.begin(), card.end(), '\r'), card.end());
  if (!card.starts_with("---\n")) return false;
  const std::string_view head = std::string_view(card).substr(0, card.find("\n---", 3));
  const auto has = [&](const char* key) { return head.find(key) != head.npos; };
  return has("\ndataset_info:") || has("\nconfigs:") || has("\ntask_categories:") ||
         has("\nsize_categories:") || has("\nlicense:") || has("\npretty_name:");
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error) fail_read(folder, error);
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace

fs::file_status status_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error && status.type() != fs::file_type::not_found) fail_read(path, error);
  return status;
}

Walk::Walk(FoundInputs& found, const std::vector<fs::path>& excluded) : found_(found) {
  for (const fs::path& path : excluded) {
    if (!path.empty()) excluded_.push_back(real_path(path));
  }
}

void Walk::folder(const fs::path& top) {
  const size_t first = found_.files.size();
  walk(top);
  std::sort(found_.files.begin() + static_cast<std::ptrdiff_t>(first), found_.files.end(),
            [](const InputFile& a, const InputFile& b) { return a.path < b.path; });
  leave_out_cards(first);
  if (num_hidden_ > 0) {
    pass_over(fmt::format("{}: {} hidden files and folders (named .…)", top.string(), num_hidden_));
  }
  num_hidden_ = 0;
}

void Walk::walk(const fs::path& folder) {
  const std::vector<fs::path> entries = entries_of(folder);
  const auto has = [&](const char* name) {
    return std::find(entries.begin(), entries.end(), folder / name) != entries.end();
  };
  if (is_hub_cache(folder)) return hub_cache(folder, entries);
  if (has(kSplitsFile)) fail_splits(folder);
  if (has(kStateFile) && saved_dataset(folder, entries)) return;
  for (const fs::path& path : entries) visit(path);
}

// blobs/ holds contents under their hashes, and snapshots/REVISION/ links to them.
void Walk::hub_cache(const fs::path& folder, const std::vector<fs::path>& entries) {
  const fs::path snapshots = folder / "snapshots";
  std::vector<fs::path> revisions = entries_of(snapshots);
  std::erase_if(revisions, [](const fs::path& path) { return !is_real_folder(path); });
  if (revisions.empty()) return pass_over(folder.string() + ": a cache without a snapshot");
  fs::path taken = revisions.front();
  if (revisions.size() > 1) {
    Result<std::string> main = try_run([&] { return read_file(folder / "refs/main", 1024); });
    taken = snapshots / (main.ok() ? main.value().substr(0, main.value().find('\n')) : "");
    if (std::find(revisions.begin(), revisions.end(), taken) == revisions.end()) {
      fail(ErrorCode::kUsage,
           "{}: a cache of the Hugging Face Hub with {} snapshots: expected one of them, such as "
           "{}",
           folder.string(), revisions.size(), revisions.front().string());
    }
  }
  pass_over(fmt::format(
      "{}: a cache of the Hugging Face Hub: its snapshot {} is read, and {}not blobs and refs",
      folder.string(), taken.filename().string(), revisions.size() > 1 ? "not the others, " : ""));
  for (const fs::path& entry : entries) {
    const std::string name = entry.filename().string();
    if (name != "blobs" && name != "refs" && name != "snapshots") visit(entry);
  }
  visit(taken);
}

void Walk::visit(const fs::path& path) {
  if (path.filename().string().starts_with('.')) {
    ++num_hidden_;
    return;
  }
  if (const std::string_view why = left_by_program(path.filename().string()); !why.empty()) {
    return pass_over(fmt::format("{}: {}", path.string(), why));
  }
  std::error_code error;
  const bool is_link = fs::is_symlink(fs::symlink_status(path, error));
  if (is_link && !fs::exists(fs::status(path, error))) {
    return pass_over(path.string() + ": a link that leads nowhere");
  }
  const fs::file_status status = status_of(path);
  if (std::find(excluded_.begin(), excluded_.end(), real_path(path)) != excluded_.end()) {
    return pass_over(path.string() + ": the output");
  }
  if (fs::is_directory(status)) {
    if (!is_link) return walk(path);
    return pass_over(path.string() + ": a link to a folder (name it to have it read)");
  }
  if (!fs::is_regular_file(status)) return pass_over(path.string() + ": no regular file");
  visit_file(path);
}

void Walk::visit_file(const fs::path& path) {
  if (is_of_sources(path) && is_file(fs::path(path).replace_extension())) {
    return;  // of the corpus beside it, which is read
  }
  if (is_card(fs::absolute(path).lexically_normal())) {
    return pass_over(path.string() + ": the card of a repository");
  }
  if (is_lfs_pointer_file(path)) return pass_over(fmt::format("{}: {}", path.string(), kLfsAdvice));
  found_.files.push_back({path, false});
}

// Of a data set that is no file of a cache: its tables are there, and README.md says what they are.
void Walk::leave_out_cards(size_t first) {
  const auto begin = found_.files.begin() + static_cast<std::ptrdiff_t>(first);
  const bool has_tables = std::any_of(begin, found_.files.end(), [](const InputFile& file) {
    const InputFormat format = input_format(file.path);
    return format != InputFormat::kText && format != InputFormat::kUnknown &&
           format != InputFormat::kPacked;
  });
  if (!has_tables) return;
  const auto is_left = [&](const InputFile& file) {
    if (!begins_as_card(file.path)) return false;
    pass_over(file.path.string() + ": the card of a repository (name it to have it read)");
    return true;
  };
  found_.files.erase(std::remove_if(begin, found_.files.end(), is_left), found_.files.end());
}

// Adds the files of a saved dataset; false if state.json is something else.
bool Walk::saved_dataset(const fs::path& folder, const std::vector<fs::path>& entries) {
  Json state;
  try {
    state = read_json((folder / kStateFile).string());
  } catch (const Error&) {
    return false;
  }
  if (!state.is_object() || !state.contains("_data_files")) return false;
  const Json& files = state["_data_files"];
  if (!files.is_array() || files.empty()) {
    fail(ErrorCode::kInvalid, "{}: a saved dataset without data files in {}", folder.string(),
         kStateFile);
  }
  for (const char* key : {"_indices_data_files", "_indices_files"}) {
    if (!state.contains(key) || state[key].is_null() || state[key].empty()) continue;
    fail(ErrorCode::kUnsupported,
         "{}: a saved dataset that selects rows by indices: expected its rows themselves; save "
         "`dataset.flatten_indices()`",
         folder.string());
  }
  std::set<fs::path> own{folder / kStateFile, folder / kInfoFile};
  for (const Json& file : files) {
    if (!file.is_object() || !file.contains("filename") || !file["filename"].is_string() ||
        fs::path(file["filename"].get<std::string>()).has_parent_path()) {
      fail(ErrorCode::kInvalid, "{}/{}: expected data files as {{\"filename\": NAME}}",
           folder.string(), kStateFile);
    }
    const fs::path path = folder / file["filename"].get<std::string>();
    if (!is_file(path)) {
      fail(ErrorCode::kNotFound, "{}: the saved dataset lists {}, which is not there",
           folder.string(), path.filename().string());
    }
    found_.files.push_back({path, false});
    own.insert(path);
  }
  const auto num_others = std::count_if(entries.begin(), entries.end(),
                                        [&](const fs::path& path) { return !own.contains(path); });
  if (num_others > 0) {
    pass_over(
        fmt::format("{}: {} files beside those of the saved dataset", folder.string(), num_others));
  }
  return true;
}

}  // namespace skein
