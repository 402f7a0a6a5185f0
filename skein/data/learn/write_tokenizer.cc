#include "skein/data/learn/write_tokenizer.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/shared/partials.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "skein/objects/object_writer.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

using Files = std::map<std::string, std::string>;

constexpr const char* kStaged = "tokenizer";  // of the folder of files that are to be renamed

bool is_model(const fs::path& file) {
  return file.filename() == "tokenizer.model" || file.filename() == "tokenizer.json";
}

const std::string& model_of(const Files& files) {
  return files.contains("tokenizer.model") ? files.find("tokenizer.model")->first
                                           : files.find("tokenizer.json")->first;
}

// Nothing of a replaced tokenizer stays, and its model goes first: its chat template or added
// tokens would be taken for the new one's.
void write_objects(const fs::path& url, const Files& files) {
  std::vector<fs::path> former = tokenizer_files_in(url);
  std::stable_partition(former.begin(), former.end(), is_model);
  for (const fs::path& file : former) remove_object(parse_object_url(file.native()));
  const std::string& model = model_of(files);
  for (const auto& [name, text] : files) {
    if (name != model) write_file_or_object(url / name, text);
  }
  write_file_or_object(url / model, files.at(model));
}

// Makes and fills a folder that this process holds.
FileDescriptor write_partial(const fs::path& partial, const Files& files) {
  fs::create_directory(partial);
  FileDescriptor held = hold_partial(partial);
  for (const auto& [name, text] : files) write_file_atomic(partial / name, text);
  return held;
}

bool holds_tokenizer_files_alone(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    const auto names = tokenizer_file_names();
    const std::string name = entry->path().filename().string();
    const bool is_ours = std::find(names.begin(), names.end(), name) != names.end();
    if (!is_ours || entry->symlink_status(ignored).type() != fs::file_type::regular) return false;
  }
  return !error;
}

void move_to(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) {
    fail(errno_code(error.value()), "cannot rename {} to {}: {}", from.string(), to.string(),
         errno_text(error.value()));
  }
}

void put_in_place(const fs::path& partial, const fs::path& folder) {
  const fs::path replaced = folder.string() + ".replaced";
  if (!fs::exists(folder)) return move_to(partial, folder);
  if (!exchange_names(partial, folder)) {
    fs::remove_all(replaced);
    move_to(folder, replaced);
    move_to(partial, folder);
    fs::remove_all(replaced);
    return;
  }
  fs::remove_all(partial);
}

// False, and nothing is changed, where a folder beside it cannot be made or take its name.
bool replace_folder(const fs::path& folder, const Files& files) {
  const fs::path partial = unique_partial(folder);
  std::error_code error;
  remove_dead_partials(folder);
  try {
    const FileDescriptor held = write_partial(partial, files);
    const fs::file_status former = fs::status(folder, error);
    if (fs::exists(former)) fs::permissions(partial, former.permissions(), error);
    put_in_place(partial, folder);
  } catch (const std::exception&) {
    fs::remove_all(partial, error);
    if (!fs::exists(folder)) throw;
    return false;
  }
  fsync_folder(folder.parent_path());
  return true;
}

void replace_files(const fs::path& folder, const Files& files) {
  remove_dead_partials(folder / kStaged);
  const fs::path staged = unique_partial(folder / kStaged);
  try {
    const FileDescriptor held = write_partial(staged, files);
    std::vector<fs::path> former = tokenizer_files_in(folder);
    std::stable_partition(former.begin(), former.end(), is_model);
    for (const fs::path& file : former) {
      if (is_model(file) || !files.contains(file.filename().string())) fs::remove(file);
    }
    const std::string& model = model_of(files);
    for (const auto& [name, text] : files) {
      if (name != model) move_to(staged / name, folder / name);
    }
    move_to(staged / model, folder / model);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(staged, ignored);
    throw;
  }
  fs::remove(staged);
  fsync_folder(folder);
}

}  // namespace

std::vector<fs::path> tokenizer_files_in(const fs::path& out_dir) {
  std::vector<fs::path> files;
  for (const char* name : tokenizer_file_names()) {
    const fs::path file = out_dir / name;
    if (is_object_url(file) ? has_object(parse_object_url(file.native())) : fs::exists(file)) {
      files.push_back(file);
    }
  }
  return files;
}

void write_tokenizer(const fs::path& out_dir, const Files& files) {
  if (is_object_url(out_dir)) return write_objects(out_dir, files);
  // Where a link leads is replaced, not the link.
  fs::path folder = fs::weakly_canonical(fs::absolute(out_dir));
  if (!folder.has_filename()) folder = folder.parent_path();
  make_folders(folder.parent_path());
  const bool is_all_ours = !fs::exists(folder) || holds_tokenizer_files_alone(folder);
  if (is_all_ours && replace_folder(folder, files)) return;
  replace_files(folder, files);
}

}  // namespace skein
