#include "skein/train/start/run_copies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/checkpoint/find/objects.h"
#include "skein/checkpoint/format/file_ops.h"
#include "skein/checkpoint/format/stored_file.h"
#include "skein/data/tokenizer/folder/folder.h"
#include "skein/objects/store.h"
#include "skein/weights/model_source.h"

namespace skein {
namespace {

using Files = std::map<std::string, std::string>;  // name to bytes

Files files_of(const Tokenizer& tokenizer) {
  Files files;
  for (const fs::path& file : tokenizer.files()) {
    files.try_emplace(kept_tokenizer_name(file), read_file_or_object(file));
  }
  return files;
}

// Where no file of the tokenizer names EOS but one of its model, the copy needs to say it too.
void add_eos(const Tokenizer& tokenizer, Files& files) {
  const TokenizerFolder folder(tokenizer.files());
  const auto eos = folder.model_eos();
  if (folder.special("eos_token") || !eos || eos->id != tokenizer.eos_id()) return;
  files[std::string(kGenerationConfig)] =
      json_text(OrderedJson{{"_from_model_config", true}, {"eos_token_id", eos->id}}, 2) + "\n";
}

bool holds(const fs::path& folder, const Files& files) {
  if (!fs::is_directory(folder)) return false;
  size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory()) continue;
    const auto found = files.find(entry.path().lexically_relative(folder).string());
    if (found == files.end() || !entry.is_regular_file() ||
        read_file(entry.path()) != found->second) {
      return false;
    }
    ++count;
  }
  return count == files.size();
}

// What the copy has that is another now. What decides the ids was compared before, with the
// checkpoint; the rest, such as a chat template, is only for those who read the copy.
void say_what_is_replaced(const fs::path& folder, const Files& files) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files) {
    if (fs::is_regular_file(folder / name) && read_file(folder / name) != bytes)
      names.push_back(name);
  }
  if (names.empty()) return;
  log::info("{}: {} replaced, which changed in data.tokenizer since the last start",
            folder.string(), fmt::join(names, ", "));
}

// Replaces the folder by renaming, so that a crash at any moment leaves the old or the new one.
void write_folder(const fs::path& folder, const Files& files) {
  if (holds(folder, files)) return;
  check_tokenizer_copy(folder);
  say_what_is_replaced(folder, files);
  const FileOps ops;
  const fs::path partial = folder.string() + ".partial", old = folder.string() + ".replaced";
  ops.remove_tree(partial);
  ops.make_folder(partial);
  for (const auto& [name, bytes] : files) {
    make_folders((partial / name).parent_path());
    write_file_atomic(partial / name, bytes);
  }
  if (!fs::exists(folder)) {
    ops.rename(partial, folder);
  } else if (ops.exchange(partial, folder)) {
    ops.remove_tree(partial);
  } else {
    ops.remove_tree(old);
    ops.rename(folder, old);
    ops.rename(partial, folder);
    ops.remove_tree(old);
  }
  ops.sync_folder(folder.parent_path());
}

// Beside the checkpoints in a bucket, which may be all that is left of the run.
void write_tokenizer_objects(const fs::path& checkpoints, const Files& files) {
  const fs::path folder = checkpoints / kTokenizerFolder;
  Files stored;
  for (const StoredObject& object : objects_in(folder)) {
    stored[object.name] = StoredFile(folder / object.name).text();
  }
  for (const auto& [name, bytes] : files) {
    const auto found = stored.find(name);
    if (found == stored.end() || found->second != bytes) FileOps().put_object(folder / name, bytes);
  }
}

}  // namespace

void check_tokenizer_copy(const fs::path& folder) {
  if (!is_there(folder)) return;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && is_tokenizer_file(name)) continue;
    if (entry.is_directory() && name == kNamedTemplates) continue;
    fail(ErrorCode::kUsage,
         "{} is where a run keeps a copy of its tokenizer, and holds {}, which is none of that: "
         "name another run.dir",
         folder.string(), name);
  }
}

void keep_tokenizer(const Config& config, const Tokenizer& tokenizer) {
  Files files = files_of(tokenizer);
  add_eos(tokenizer, files);
  write_folder(fs::path(config.run.dir) / kTokenizerFolder, files);
  if (is_object_url(checkpoint_dir(config))) write_tokenizer_objects(checkpoint_dir(config), files);
}

void keep_generation_config(const Config& config) {
  if (config.model.init_from.empty()) return;
  const fs::path run = config.run.dir;
  const fs::path source = source_generation_config(config.model.init_from);
  if (source.empty()) return;
  const std::string text = read_file_or_object(source);
  write_file_atomic(run / kGenerationConfig, text);
  const fs::path checkpoints = checkpoint_dir(config);
  if (is_object_url(checkpoints)) {
    FileOps().put_object(checkpoints / kGenerationConfig, text);
  } else if (checkpoints.parent_path() != run) {
    fs::create_directories(checkpoints);
    write_file_atomic(checkpoints / kGenerationConfig, text);
  }
}

}  // namespace skein
