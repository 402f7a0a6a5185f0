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
#include "skein/data/corpus/corpus_sources.h"
#include "skein/data/corpus/shard_set.h"
#include "skein/objects/object_writer.h"
#include "skein/objects/store.h"
#include "skein/prepare/work_folder.h"

namespace skein {
namespace {

constexpr size_t kSentAtOnce = size_t{1} << 20;

Place sources_beside(const Place& corpus) { return corpus.with_suffix(kSourcesSuffix); }

bool exists(const Place& place) {
  return place.is_object() ? has_object(*place.object()) : is_there(place.path());
}

[[noreturn]] void fail_folder(const char* option, const Place& place, const char* example) {
  fail(ErrorCode::kUsage, "{} {}: is a folder: expected the name of {}, such as {}", option,
       place.is_named() ? place.text() : "\"\"", place.is_object() ? "an object" : "a file",
       (place.path() / example).string());
}

// A corpus of the same inputs and options was found before (is_made_from).
[[noreturn]] void fail_exists(const char* option, const Place& place) {
  const char* thing = place.is_object() ? "object" : "file";
  if (!exists(sources_beside(place))) {
    fail(ErrorCode::kUsage, "{} {}: exists: name another {}, or --overwrite to replace it", option,
         place.text(), thing);
  }
  fail(ErrorCode::kUsage,
       "{} {}: exists, made of other inputs or with other options, or inputs have changed since: "
       "--overwrite makes it again, or name another {}",
       option, place.text(), thing);
}

void check_place(const char* option, const Place& place, bool overwrite) {
  const bool is_folder =
      place.is_object() ? place.object()->key.empty() : is_folder_there(place.path());
  if (is_folder || !place.path().has_filename()) fail_folder(option, place, "corpus.arrow");
  if (place.is_object()) require_store(place.text(), option);
  if (!overwrite && exists(place)) fail_exists(option, place);
}

// An object that is older than its sources was not written with them.
bool is_made_there(const Place& corpus) {
  if (!exists(corpus)) return false;
  if (!corpus.is_object()) return true;
  const auto changed_ns = [](const Place& place) {
    return list_objects(*place.object()).front().changed_ns;
  };
  const Place sources = sources_beside(corpus);
  return exists(sources) && changed_ns(corpus) >= changed_ns(sources);
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
      send(sources_of(output.made), sources_beside(output.named));
      send(output.made, output.named);
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("{}; it is made, in {}: the same command again sends it",
                              error.what(), output.made.string()));
    }
  }

 private:
  void send(const fs::path& from, const Place& to) {
    const MappedFile file(from);
    ObjectWriter object(*to.object());
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

Output output_of(const Place& named, const fs::path& work) {
  if (!named.is_object()) return {named, named.path()};
  const fs::path folder = work.empty() ? own_folder() : fs::absolute(work);
  return {named, folder / named.object()->path()};
}

void check_output(const char* option, const Output& output, bool overwrite) {
  check_place(option, output.named, overwrite);
  if (!output.made.has_parent_path()) return;
  std::error_code error;
  fs::create_directories(output.made.parent_path(), error);
  if (error) {
    fail(ErrorCode::kUsage, "{} {}: cannot make the folder {}: {}", option, output.named.text(),
         output.made.parent_path().string(), errno_text(error.value()));
  }
}

bool is_made_from(const Place& corpus, const std::string& made_from) {
  if (!is_made_there(corpus)) return false;
  const std::optional<CorpusSources> sources = CorpusSources::beside(corpus.path());
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
    const fs::path key = output.named.object()->path();
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

void check_not_outputs(const std::vector<InputFile>& inputs, const std::vector<Place>& outputs) {
  std::set<fs::path> names;
  std::set<FileIdentity> identities;  // of those that are there
  for (const Place& output : outputs) {
    names.insert(output.path());
    if (const auto identity = identity_of(output)) identities.insert(*identity);
  }
  const auto is_written = [&](const fs::path& path) {
    if (names.contains(path)) return true;
    if (identities.empty()) return false;
    const auto identity = identity_of(path);
    return identity.has_value() && identities.contains(identity.value());
  };
  for (const InputFile& input : inputs) {
    if (!is_written(input.path)) continue;
    fail(ErrorCode::kUsage, "{}: an input, and what is to be written as well", input.path.string());
  }
}

}  // namespace skein
