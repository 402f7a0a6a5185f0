#include "skein/checkpoint/find/objects.h"

#include <algorithm>
#include <map>
#include <set>

#include "skein/base/error.h"
#include "skein/base/threads/parallel_for.h"
#include "skein/checkpoint/find/reader.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

constexpr const char* kManifest = "manifest.json";
constexpr int kRemovedAtOnce = 16;

// What lies in a folder of checkpoints, by the names of steps.
std::map<std::string, std::vector<StoredObject>> steps_in(const fs::path& dir) {
  std::map<std::string, std::vector<StoredObject>> steps;
  for (StoredObject& object : objects_in(dir)) {
    const size_t slash = object.name.find('/');
    if (slash == std::string::npos) continue;
    const std::string step = object.name.substr(0, slash);
    if (parse_checkpoint_name(step)) {
      steps[step].push_back({object.name.substr(slash + 1), object.num_bytes});
    }
  }
  return steps;
}

bool has_manifest(const std::vector<StoredObject>& objects) {
  return std::any_of(objects.begin(), objects.end(),
                     [](const StoredObject& object) { return object.name == kManifest; });
}

// The text between the last two dots: which save an object is of.
std::string save_of(const std::string& name) {
  const size_t end = name.rfind('.');
  const size_t begin = end == std::string::npos || end == 0 ? end : name.rfind('.', end - 1);
  return begin == std::string::npos ? "" : name.substr(begin + 1, end - begin - 1);
}

// Whether a look at the objects tells that they are a manifest and what one save wrote.
bool is_of_one_save(const std::vector<StoredObject>& objects) {
  std::set<std::string> saves;
  for (const StoredObject& object : objects) {
    if (object.name == kManifest) continue;
    if (object.name.find('/') != std::string::npos) return false;
    saves.insert(save_of(object.name));
  }
  return saves.size() <= 1;
}

std::set<std::string> named_by(const CheckpointReader& reader) {
  std::set<std::string> names = {kManifest};
  if (reader.manifest().index) names.insert(reader.manifest().index->file);
  for (int64_t i = 0; i < reader.shards().num_files(); ++i) {
    names.insert(reader.shards().file(i).name);
  }
  return names;
}

}  // namespace

std::vector<CheckpointInfo> list_checkpoint_objects(const fs::path& dir) {
  std::vector<CheckpointInfo> found;
  for (const auto& [name, objects] : steps_in(dir)) {
    if (has_manifest(objects)) found.push_back({*parse_checkpoint_name(name), dir / name});
  }
  std::sort(found.begin(), found.end(),
            [](const CheckpointInfo& a, const CheckpointInfo& b) { return a.step > b.step; });
  return found;
}

void remove_unnamed(const fs::path& checkpoint, const std::vector<StoredObject>& objects,
                    const FileOps& ops, const std::string& keep) {
  std::set<std::string> named;
  try {
    named = named_by(CheckpointReader(checkpoint));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kIo) throw;
    return;  // a damaged one is left to the search for the newest good one, which reports it
  }
  std::set<std::string> unnamed;
  for (const StoredObject& object : objects) {
    const std::string first = object.name.substr(0, object.name.find('/'));
    if (!named.contains(object.name) && first != keep) unnamed.insert(first);
  }
  std::vector<std::string> names(unnamed.begin(), unnamed.end());
  parallel_for_each(names, kRemovedAtOnce,
                    [&](const std::string& name) { ops.remove_tree(checkpoint / name); });
}

void clean_unfinished_objects(const fs::path& dir, const FileOps& ops, const fs::path& keep) {
  for (const auto& [name, objects] : steps_in(dir)) {
    if (dir / name == keep) continue;
    if (!has_manifest(objects)) {
      ops.remove_tree(dir / name);
    } else if (!is_of_one_save(objects)) {
      remove_unnamed(dir / name, objects, ops);
    }
  }
}

void remove_checkpoint_objects(const fs::path& checkpoint, const FileOps& ops) {
  ops.remove_tree(checkpoint / kManifest);
  ops.remove_tree(checkpoint);
}

}  // namespace skein
