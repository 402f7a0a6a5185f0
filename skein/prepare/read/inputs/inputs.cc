#include "skein/prepare/read/inputs/inputs.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/text/hub_name.h"
#include "skein/data/corpus/corpus_sources.h"
#include "skein/objects/url.h"
#include "skein/prepare/read/inputs/bucket_inputs.h"
#include "skein/prepare/read/inputs/input_format.h"
#include "skein/prepare/read/inputs/walk.h"

namespace skein {
namespace {

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

// Notes tables of several splits, by names of files or their folders, as on the Hugging Face Hub.
void note_splits(FoundInputs& found) {
  std::vector<std::pair<std::string, fs::path>> examples;
  for (const InputFile& file : found.files) {
    if (file.named) continue;
    const InputFormat format = input_format(file.path);
    if (format == InputFormat::kText || format == InputFormat::kUnknown) continue;
    const std::string own = split_of(file.path);
    const std::string split = own.empty() ? split_of(file.path.parent_path()) : own;
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

// "a/d.jsonl" of "a/d.jsonl.gz", "a/d.jsonl.bak" and "a/d (1).jsonl".
fs::path without_copy_marks(fs::path path) {
  static const std::set<std::string> marks{".gz", ".bz2", ".xz",  ".zst",  ".lz4",
                                           ".br", ".bak", ".old", ".orig", ".copy"};
  while (marks.contains(path.extension().string())) path.replace_extension();
  const std::string stem = path.stem().string();
  const size_t number = stem.rfind(" (");
  if (number == stem.npos || !stem.ends_with(')')) return path;
  return path.parent_path() / (stem.substr(0, number) + path.extension().string());
}

constexpr size_t kMostNotes = 3;  // of a kind; of the others their number

// Notes files of one folder that may be copies of each other.
void note_copies(FoundInputs& found) {
  std::map<fs::path, fs::path> firsts;
  size_t count = 0;
  for (const InputFile& file : found.files) {
    const auto [first, is_new] = firsts.emplace(without_copy_marks(file.path), file.path);
    if (is_new || (file.named && first->second == file.path) || ++count > kMostNotes) continue;
    found.notes.push_back(
        fmt::format("{} and {}: by their names they hold the same texts, and both are read; name "
                    "files or folders to leave some out",
                    first->second.string(), file.path.string()));
  }
  if (count > kMostNotes) {
    found.notes.push_back(fmt::format("{} more files look like copies of others, by their names",
                                      count - kMostNotes));
  }
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

// A file that a folder holds is taken once, also if it is named beside the folder, or another
// folder holds it, or it has several names. One that is named twice is wanted twice.
void take_once(FoundInputs& found) {
  std::map<fs::path, size_t> places;
  std::map<FileIdentity, size_t> identities;
  std::vector<InputFile> files;
  size_t num_same = 0;
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
        if (++num_same <= kMostNotes) {
          found.notes.push_back(fmt::format("{}: the same file as {}: taken once",
                                            file.path.string(), other.path.string()));
        }
        continue;
      }
    }
    if (!is_new && file.named && files[place->second].named) {
      found.notes.push_back(fmt::format("{}: named twice: read twice", file.path.string()));
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
  if (num_same > kMostNotes) {
    found.notes.push_back(fmt::format("{} more files are other names of files: each is taken once",
                                      num_same - kMostNotes));
  }
  found.files = std::move(files);
}

}  // namespace

std::optional<FileIdentity> identity_of(const Place& place) {
  struct stat state {};
  if (place.is_object() || ::stat(place.path().c_str(), &state) != 0) return std::nullopt;
  return FileIdentity(state.st_dev, state.st_ino);
}

FoundInputs find_inputs(const std::vector<fs::path>& inputs,
                        const std::vector<fs::path>& excluded) {
  FoundInputs found;
  Walk walk(found, excluded);
  for (const fs::path& input : inputs) {
    if (const Place place(input); place.is_object()) {
      find_objects(*place.object(), excluded, found);
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
  note_copies(found);
  return found;
}

}  // namespace skein
