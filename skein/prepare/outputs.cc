#include "skein/prepare/outputs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/data/corpus/shard_set.h"
#include "skein/data/corpus/sources.h"
#include "skein/objects/store.h"
#include "skein/objects/writer.h"
#include "skein/prepare/work_folder.h"

namespace skein {
namespace {

constexpr size_t kSentAtOnce = size_t{1} << 20;

[[noreturn]] void fail_folder(const char* option, const fs::path& path, const char* example) {
  fail(ErrorCode::kUsage, "{} {}: is a folder: expected the name of {}, such as {}", option,
       path.empty() ? "\"\"" : path.string(), is_object_url(path) ? "an object" : "a file",
       (path / example).string());
}

// A corpus of the same inputs and options was found before (is_made_from).
[[noreturn]] void fail_exists(const char* option, const fs::path& path, bool has_sources) {
  const char* thing = is_object_url(path) ? "object" : "file";
  if (!has_sources) {
    fail(ErrorCode::kUsage, "{} {}: exists: name another {}, or --overwrite to replace it", option,
         path.string(), thing);
  }
  fail(ErrorCode::kUsage,
       "{} {}: exists, made of other inputs or with other options, or inputs have changed since: "
       "--overwrite makes it again, or name another {}",
       option, path.string(), thing);
}

void check_object(const char* option, const fs::path& named, bool overwrite) {
  const ObjectUrl url = parse_object_url(named.native());
  if (url.key.empty() || !named.has_filename()) fail_folder(option, named, "corpus.arrow");
  require_store(named.string(), option);
  if (!overwrite && has_object(url)) {
    fail_exists(option, named, has_object(parse_object_url(sources_of(named).native())));
  }
}

void check_file(const char* option, const fs::path& path, bool overwrite) {
  if (path.empty() || !path.has_filename() || is_folder_there(path)) {
    fail_folder(option, path, "corpus.arrow");
  }
  if (!overwrite && is_there(path)) fail_exists(option, path, is_there(sources_of(path)));
}

bool is_made_there(const fs::path& corpus) {
  if (!is_object_url(corpus)) return is_there(corpus);
  const auto changed_ns = [](const fs::path& path) {
    return list_objects(parse_object_url(path.native())).front().changed_ns;
  };
  const auto has = [](const fs::path& path) { return has_object(parse_object_url(path.native())); };
  return has(corpus) && has(sources_of(corpus)) &&
         changed_ns(corpus) >= changed_ns(sources_of(corpus));
}

class Sending {
 public:
  Sending(const std::vector<Output>& outputs, const OnSent& on_sent) : on_sent_(on_sent) {
    for (const Output& output : outputs) {
      if (!output.is_sent()) continue;
      of_ +=
          static_cast<int64_t>(fs::file_size(output.made) + fs::file_size(sources_of(output.made)));
    }
  }

  void send(const Output& output) {
    if (!output.is_sent()) return;
    try {
      send(sources_of(output.made), sources_of(output.named));
      send(output.made, output.named);
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("{}; it is made, in {}: the same command again sends it",
                              error.what(), output.made.string()));
    }
  }

 private:
  void send(const fs::path& from, const fs::path& to) {
    const MappedFile file(from);
    ObjectWriter object(parse_object_url(to.native()));
    for (auto left = file.bytes(); !left.empty();) {
      const auto part = left.first(std::min(kSentAtOnce, left.size()));
      object.write(part);
      file.forget(part);
      left = left.subspan(part.size());
      num_bytes_ += static_cast<int64_t>(part.size());
      if (on_sent_) on_sent_(num_bytes_, of_);
    }
    object.finish();
  }

  const OnSent& on_sent_;
  int64_t num_bytes_ = 0, of_ = 0;
};

// In TMPDIR, where others may write as well.
fs::path own_folder() {
  const fs::path folder = fs::temp_directory_path() / fmt::format("skein-{}", ::getuid());
  struct stat found {};
  if (::mkdir(folder.c_str(), 0700) == 0 ||
      (::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
       found.st_uid == ::getuid())) {
    return folder;
  }
  fail(ErrorCode::kUsage, "{}: is not a folder of this user's: name one with --work",
       folder.string());
}

}  // namespace

Output output_of(const fs::path& named, const fs::path& work) {
  if (!is_object_url(named)) return {named, named};
  const fs::path folder = work.empty() ? own_folder() : fs::absolute(work);
  return {named, folder / parse_object_url(named.native()).path()};
}

void check_output(const char* option, const Output& output, bool overwrite) {
  if (output.is_sent()) {
    check_object(option, output.named, overwrite);
  } else {
    check_file(option, output.named, overwrite);
  }
  if (!output.made.has_parent_path()) return;
  std::error_code error;
  fs::create_directories(output.made.parent_path(), error);
  if (error) {
    fail(ErrorCode::kUsage, "{} {}: cannot make the folder {}: {}", option, output.named.string(),
         output.made.parent_path().string(), errno_text(error.value()));
  }
}

bool is_made_from(const fs::path& corpus, const std::string& made_from) {
  if (!is_made_there(corpus)) return false;
  const std::optional<CorpusSources> sources = CorpusSources::beside(corpus);
  return sources && sources->made_from() == made_from;
}

bool wait_to_be_sent(const std::vector<Output>& outputs, const std::string& made_from) {
  const auto is_made = [&](const Output& output) { return is_made_from(output.made, made_from); };
  return std::any_of(outputs.begin(), outputs.end(), std::mem_fn(&Output::is_sent)) &&
         std::all_of(outputs.begin(), outputs.end(), is_made);
}

void send(const std::vector<Output>& outputs, const OnSent& on_sent) {
  const auto last = std::find_if(outputs.rbegin(), outputs.rend(), std::mem_fn(&Output::is_sent));
  if (last == outputs.rend()) return;
  {
    const WorkFolder held(work_folder_of(last->made));
    Sending sending(outputs, on_sent);
    for (const Output& output : outputs) sending.send(output);
  }
  remove_sent(outputs);
}

void remove_sent(const std::vector<Output>& outputs) {
  std::error_code ignored;
  for (const Output& output : outputs) {
    if (!output.is_sent()) continue;
    fs::remove(output.made, ignored);
    fs::remove(sources_of(output.made), ignored);
    const fs::path key = parse_object_url(output.named.native()).path();
    fs::path folder = output.made.parent_path();  // and folders in which nothing is left then
    for (auto part = std::next(key.begin()); part != key.end(); ++part) {
      if (!fs::remove(folder, ignored)) break;
      folder = folder.parent_path();
    }
  }
}

void check_shards_of_inputs(const std::vector<InputFile>& inputs) {
  std::vector<fs::path> corpora;
  for (const InputFile& input : inputs) {
    if (input.in_folder && input.path.extension() == ".arrow") corpora.push_back(input.path);
  }
  check_shards(corpora);
}

void check_not_outputs(const std::vector<InputFile>& inputs, const std::vector<fs::path>& outputs) {
  std::set<fs::path> names;
  std::set<FileIdentity> places;  // of those that are there
  for (const fs::path& output : outputs) {
    names.insert(output);
    if (const auto place = identity_of(output)) places.insert(*place);
  }
  const auto is_written = [&](const fs::path& path) {
    if (names.contains(path)) return true;
    if (places.empty()) return false;
    const auto place = identity_of(path);
    return place.has_value() && places.contains(place.value());
  };
  for (const InputFile& input : inputs) {
    if (!is_written(input.path)) continue;
    fail(ErrorCode::kUsage, "{}: an input, and what is to be written as well", input.path.string());
  }
}

}  // namespace skein
