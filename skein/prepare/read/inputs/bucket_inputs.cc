#include "skein/prepare/read/inputs/bucket_inputs.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>

#include "skein/base/error.h"
#include "skein/data/corpus/corpus_sources.h"
#include "skein/objects/store.h"
#include "skein/prepare/read/bytes/foreign_files.h"
#include "skein/prepare/read/inputs/input_format.h"

namespace skein {
namespace {

// Of those that were listed, or of the one beside a corpus that was named.
std::map<std::string, int64_t> changes_of_sources(const std::vector<ObjectInfo>& objects) {
  std::map<std::string, int64_t> changes;
  const auto add = [&](const ObjectInfo& object) { changes[object.url] = object.changed_ns; };
  for (const ObjectInfo& object : objects) {
    if (is_of_sources(object.url)) add(object);
    if (!object.named || input_format(object.url) != InputFormat::kArrow) continue;
    const ObjectUrl sources = parse_object_url(sources_of(object.url).native());
    if (has_object(sources)) add(list_objects(sources).front());
  }
  return changes;
}

}  // namespace

void find_objects(const ObjectUrl& url, const std::vector<fs::path>& excluded, FoundInputs& found) {
  int64_t num_hidden = 0;
  const std::vector<ObjectInfo> objects = list_objects(url);
  const std::map<std::string, int64_t> sources = changes_of_sources(objects);
  const auto is_excluded = [&](const std::string& object) {
    return std::any_of(excluded.begin(), excluded.end(), [&](const fs::path& path) {
      return object == path || (!path.empty() && object.starts_with((path / "").native()));
    });
  };
  std::unordered_set<std::string> urls;
  for (const ObjectInfo& object : objects) urls.insert(object.url);
  for (const ObjectInfo& object : objects) {
    const fs::path path = object.url;
    const std::string name = path.filename();
    const auto pass_over = [&](std::string_view why) {
      found.passed_over.push_back(fmt::format("{}: {}", object.url, why));
    };
    const std::string_view why = left_by_program(name);
    if (!object.named && object.url.find("/.", url.text().size()) != std::string::npos) {
      ++num_hidden;
    } else if (!object.named && (name == kStateFile || name == kSplitsFile)) {
      fail(ErrorCode::kUnsupported,
           "{}: {} is of a folder that `datasets` saved, which is not read from a bucket yet: "
           "expected its .arrow files, named one by one",
           url.text(), object.url);
    } else if (!object.named && is_of_sources(path) &&
               urls.contains(fs::path(path).replace_extension().native())) {
      continue;  // of the corpus beside it, which is read
    } else if (!object.named && is_excluded(object.url)) {
      pass_over("the output");
    } else if (!object.named && !why.empty()) {
      pass_over(why);
    } else {
      const auto of_sources = sources.find(sources_of(path).native());
      const int64_t mixed_in = of_sources == sources.end() ? 0 : of_sources->second;
      found.files.push_back({path, object.named, object.num_bytes, object.changed_ns ^ mixed_in});
    }
  }
  if (num_hidden > 0) {
    found.passed_over.push_back(
        fmt::format("{}: {} hidden objects (named .…)", url.text(), num_hidden));
  }
}

}  // namespace skein
