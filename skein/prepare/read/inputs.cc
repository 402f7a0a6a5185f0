#include "skein/prepare/read/inputs.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/hub_name.h"
#include "skein/base/json.h"
#include "skein/base/lfs_pointer.h"
#include "skein/data/corpus_sources.h"
#include "skein/objects/object_url.h"
#include "skein/prepare/read/bucket_inputs.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

[[noreturn]] void fail_read(const fs::path& path, const std::error_code& error) {
  fail(errno_code(error.value()), "cannot read {}: {}", path.string(), errno_text(error.value()));
}

// Follows links.
fs::file_status status_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error && status.type() != fs::file_type::not_found) fail_read(path, error);
  return status;
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

class Walk {
 public:
  Walk(FoundInputs& found, const std::vector<fs::path>& excluded) : found_(found) {
    for (const fs::path& path : excluded) {
      if (!path.empty()) excluded_.push_back(real_path(path));
    }
  }

  void folder(const fs::path& top) {
    const size_t first = found_.files.size();
    walk(top);
    std::sort(found_.files.begin() + static_cast<std::ptrdiff_t>(first), found_.files.end(),
              [](const InputFile& a, const InputFile& b) { return a.path < b.path; });
    if (num_hidden_ > 0) {
      pass_over(
          fmt::format("{}: {} hidden files and folders (named .…)", top.string(), num_hidden_));
    }
    num_hidden_ = 0;
  }

 private:
  void walk(const fs::path& folder) {
    const std::vector<fs::path> entries = entries_of(folder);
    const auto has = [&](const char* name) {
      return std::find(entries.begin(), entries.end(), folder / name) != entries.end();
    };
    if (is_hub_cache(folder)) return hub_cache(folder, entries);
    if (has(kSplitsFile)) fail_splits(folder);
    if (has(kStateFile) && saved_dataset(folder, entries)) return;
    for (const fs::path& path : entries) visit(path);
  }

  static bool is_real_folder(const fs::path& path) {
    std::error_code ignored;
    return fs::is_directory(fs::symlink_status(path, ignored));
  }
  static bool is_hub_cache(const fs::path& folder) {
    return is_real_folder(folder / "blobs") && is_real_folder(folder / "snapshots") &&
           is_real_folder(folder / "refs");
  }

  // blobs/ holds contents under their hashes, and snapshots/REVISION/ links to them.
  void hub_cache(const fs::path& folder, const std::vector<fs::path>& entries) {
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
        folder.string(), taken.filename().string(),
        revisions.size() > 1 ? "not the others, " : ""));
    for (const fs::path& entry : entries) {
      const std::string name = entry.filename().string();
      if (name != "blobs" && name != "refs" && name != "snapshots") visit(entry);
    }
    visit(taken);
  }

  static bool is_card(const fs::path& path) {
    const fs::path snapshots = path.parent_path().parent_path();
    return path.filename() == "README.md" && snapshots.filename() == "snapshots" &&
           is_hub_cache(snapshots.parent_path());
  }

  static std::vector<fs::path> entries_of(const fs::path& folder) {
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

  void visit(const fs::path& path) {
    if (path.filename().string().starts_with('.')) {
      ++num_hidden_;
      return;
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
    if (is_of_sources(path) && is_file(fs::path(path).replace_extension())) {
      return;  // of the corpus beside it, which is read
    }
    if (path.extension() == ".partial") {
      return pass_over(path.string() + ": what an interrupted program left");
    }
    if (is_card(fs::absolute(path).lexically_normal())) {
      return pass_over(path.string() + ": the card of a repository");
    }
    if (is_lfs_pointer_file(path))
      return pass_over(fmt::format("{}: {}", path.string(), kLfsAdvice));
    found_.files.push_back({path, false});
  }

  // Adds the files of a saved dataset; false if state.json is something else.
  bool saved_dataset(const fs::path& folder, const std::vector<fs::path>& entries) {
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
    const auto num_others = std::count_if(
        entries.begin(), entries.end(), [&](const fs::path& path) { return !own.contains(path); });
    if (num_others > 0) {
      pass_over(fmt::format("{}: {} files beside those of the saved dataset", folder.string(),
                            num_others));
    }
    return true;
  }

  void pass_over(std::string line) { found_.passed_over.push_back(std::move(line)); }

  FoundInputs& found_;
  std::vector<fs::path> excluded_;
  int64_t num_hidden_ = 0;
};

// "train", "test" or "validation", if a word of the file's name says so.
std::string split_of(const fs::path& path) {
  static const std::set<std::string> tests{"test", "testing"};
  static const std::set<std::string> validations{"validation", "valid", "val", "dev", "eval"};
  std::string word;
  for (const char c : path.filename().string() + ".") {
    if (std::isalpha(static_cast<uint8_t>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<uint8_t>(c)));
      continue;
    }
    if (word == "train" || word == "training") return "train";
    if (tests.contains(word)) return "test";
    if (validations.contains(word)) return "validation";
    word.clear();
  }
  return "";
}

// Notes tables of several splits in one folder, as on the Hugging Face Hub.
void note_splits(FoundInputs& found) {
  std::vector<std::pair<std::string, fs::path>> examples;
  for (const InputFile& file : found.files) {
    if (file.named) continue;
    const InputFormat format = input_format(file.path);
    if (format == InputFormat::kText || format == InputFormat::kUnknown) continue;
    const std::string split = split_of(file.path);
    const auto is_same = [&](const auto& example) { return example.first == split; };
    if (split.empty() || std::any_of(examples.begin(), examples.end(), is_same)) continue;
    examples.emplace_back(split, file.path);
  }
  if (examples.size() < 2) return;
  std::string names;
  for (const auto& [split, path] : examples) {
    names += (names.empty() ? "" : ", ") + path.string();
  }
  found.notes.push_back(
      fmt::format("files of several splits, by their names, go into one corpus: {}; name files or "
                  "folders to leave some out",
                  names));
}

// Of a file that cannot be asked, reading it says why.
void ask_state(InputFile& file) {
  struct stat state {};
  const auto changed_ns = [&] {
    constexpr int64_t kNsPerSecond = 1'000'000'000;
    return state.st_mtim.tv_sec * kNsPerSecond + state.st_mtim.tv_nsec;
  };
  if (::stat(file.path.c_str(), &state) != 0) return;
  file.num_bytes = state.st_size;
  file.changed_ns = changed_ns();
  if (::stat(sources_of(file.path).c_str(), &state) == 0) file.changed_ns ^= changed_ns();
}

// The device and number of a file; nothing for an object, or where it cannot be asked.
std::optional<std::pair<uint64_t, uint64_t>> identity_of(const fs::path& path) {
  struct stat state {};
  if (is_object_url(path) || ::stat(path.c_str(), &state) != 0) return std::nullopt;
  return std::pair<uint64_t, uint64_t>(state.st_dev, state.st_ino);
}

// A file that a folder holds is taken once, also if it is named beside the folder, or another
// folder holds it, or it has several names. One that is named twice is wanted twice.
void take_once(FoundInputs& found) {
  std::map<fs::path, size_t> places;
  std::map<std::pair<uint64_t, uint64_t>, size_t> identities;
  std::vector<InputFile> files;
  for (InputFile& file : found.files) {
    file.in_folder = !file.named;
    const fs::path whole =
        is_object_url(file.path) ? file.path : fs::absolute(file.path).lexically_normal();
    const auto [place, is_new] = places.emplace(whole, files.size());
    const auto identity = identity_of(file.path);
    if (is_new && identity) {
      const auto [same, is_first] = identities.emplace(*identity, files.size());
      if (!is_first && !(file.named && files[same->second].named)) {
        InputFile& other = files[same->second];
        // A name that says what the file is goes before one that does not.
        const bool says_more = input_format(other.path) == InputFormat::kUnknown &&
                               input_format(file.path) != InputFormat::kUnknown;
        if (says_more) std::swap(other.path, file.path);
        other.named |= file.named;
        other.in_folder |= file.in_folder;
        place->second = same->second;
        found.notes.push_back(fmt::format("{}: the same file as {}: taken once", file.path.string(),
                                          other.path.string()));
        continue;
      }
    }
    if (is_new || (file.named && files[place->second].named)) {
      files.push_back(std::move(file));
      continue;
    }
    files[place->second].named |= file.named;
    files[place->second].in_folder |= file.in_folder;
    found.notes.push_back(fmt::format(
        "{}: named twice, itself or with a folder that holds it: taken once", file.path.string()));
  }
  found.files = std::move(files);
}

}  // namespace

FoundInputs find_inputs(const std::vector<fs::path>& inputs,
                        const std::vector<fs::path>& excluded) {
  FoundInputs found;
  Walk walk(found, excluded);
  for (const fs::path& input : inputs) {
    if (is_object_url(input)) {
      find_objects(parse_object_url(input.native()), excluded, found);
      continue;
    }
    const fs::file_status status = status_of(input);
    if (fs::is_directory(status)) {
      walk.folder(input);
    } else if (fs::exists(status)) {
      found.files.push_back({input, true});
    } else {
      fail(ErrorCode::kNotFound, "{}: no such file or folder{}", input.string(),
           hub_advice(input.native(), "dataset"));
    }
  }
  take_once(found);
  for (InputFile& file : found.files) {
    if (!is_object_url(file.path)) ask_state(file);
  }
  note_splits(found);
  return found;
}

}  // namespace skein
