#include "skein/data/corpus/shard_set.h"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/threads/parallel_for.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

constexpr int64_t kHeadBytes = 4096;  // hold the schema of a corpus (kCorpusTextBegin)
constexpr int kOpenAtOnce = 24;

std::string first_bytes(const fs::path& corpus) {
  std::string head(kHeadBytes, '\0');
  if (is_object_url(corpus)) {
    const auto object = open_ranges(parse_object_url(corpus.native()));
    head.resize(static_cast<size_t>(std::min(kHeadBytes, object->num_bytes())));
    object->read(0, head);
    return head;
  }
  // A file that cannot be opened here is an error where it is read.
  Result<FileDescriptor> file = try_run([&] { return open_to_read(corpus); });
  const ssize_t count = !file.ok() ? 0 : retry_interrupted([&] {
    return ::pread(file.value().get(), head.data(), head.size(), 0);
  });
  head.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return head;
}

bool is_of_corpus(const fs::path& file) {
  return file.extension() == ".arrow" && !file.filename().string().starts_with('.');
}

}  // namespace

std::optional<ShardName> shard_name(const fs::path& path) {
  const std::string name = path.stem().string();
  const size_t of = name.rfind("-of-");
  const size_t dash =
      of == std::string::npos || of == 0 ? std::string::npos : name.rfind('-', of - 1);
  if (dash == std::string::npos) return std::nullopt;
  ShardName shard{name.substr(0, dash)};
  const auto number = [&](size_t begin, size_t end, int64_t& value) {
    const auto result = std::from_chars(name.data() + begin, name.data() + end, value);
    return result.ec == std::errc() && result.ptr == name.data() + end;
  };
  if (!number(dash + 1, of, shard.index) || !number(of + 4, name.size(), shard.count)) {
    return std::nullopt;
  }
  return shard;
}

std::string shard_of(const arrow::Schema& schema) {
  return schema.metadata() ? schema.metadata()->Get(kShardOf).ValueOr("") : "";
}

std::string shard_of(const fs::path& corpus) {
  const std::string head = first_bytes(corpus);
  const auto opened = arrow::ipc::RecordBatchStreamReader::Open(
      std::make_shared<arrow::io::BufferReader>(std::make_shared<arrow::Buffer>(head)));
  return opened.ok() ? shard_of(*(*opened)->schema()) : "";
}

std::vector<ShardList> shard_lists(const std::vector<fs::path>& shards) {
  std::vector<ShardList> lists;
  for (const fs::path& shard : shards) lists.push_back({shard, ""});
  parallel_for_each(lists, kOpenAtOnce, [](ShardList& list) { list.of = shard_of(list.shard); });
  return lists;
}

std::vector<fs::path> files_in_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  if (is_object_url(folder)) {
    const ObjectUrl url = parse_object_url(folder.native());
    for (const ObjectInfo& object : list_objects(url)) {
      if (object.named) return {object.url};
      const bool is_inside = object.url.find('/', url.text().size() + 1) != std::string::npos;
      if (!is_inside && is_of_corpus(object.url)) files.emplace_back(object.url);
    }
    return files;
  }
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_of_corpus(entry->path()) && !entry->is_directory()) files.push_back(entry->path());
  }
  if (error) {
    fail(errno_code(error.value()), "cannot read {}: {}", folder.string(),
         errno_text(error.value()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

void check_shard_names(const fs::path& folder, const std::vector<fs::path>& files) {
  std::map<std::string, std::map<int64_t, std::set<int64_t>>> found;  // by stem, then by count
  for (const fs::path& file : files) {
    if (const auto shard = shard_name(file)) found[shard->stem][shard->count].insert(shard->index);
  }
  for (const auto& [stem, sets] : found) {
    if (sets.size() > 1) {
      fail(ErrorCode::kInvalid,
           "{}: holds shards of two divisions, {}-…-of-{:05}.arrow and {}-…-of-{:05}.arrow, which "
           "may have the same documents: expected one of them; move the other elsewhere",
           folder.string(), stem, sets.begin()->first, stem, sets.rbegin()->first);
    }
    const auto& [count, indices] = *sets.begin();
    if (static_cast<int64_t>(indices.size()) >= count) continue;
    int64_t missing = 0;
    while (indices.contains(missing)) ++missing;
    fail(
        ErrorCode::kInvalid,
        "{}: holds {} of the {} files {}-…-of-{:05}.arrow, number {} is not there: expected all of "
        "them; is the machine that writes them done?",
        folder.string(), indices.size(), count, stem, count, missing);
  }
}

void check_shard_lists(const fs::path& folder, const std::vector<ShardList>& shards) {
  std::map<std::string, const ShardList*> first;  // by stem
  for (const ShardList& shard : shards) {
    const auto name = shard_name(shard.shard);
    if (!name || shard.of.empty()) continue;
    const ShardList& other = *first.try_emplace(name->stem, &shard).first->second;
    if (other.of == shard.of) continue;
    fail(ErrorCode::kInvalid,
         "{}: {} is of another list of inputs, or made with other options ({}), than {} ({}), so "
         "that documents are in two shards, or in none: expected shards of one command; make all "
         "of them again, with --overwrite",
         folder.string(), shard.shard.filename().string(), shard.of,
         other.shard.filename().string(), other.of);
  }
}

void check_shards(const std::vector<fs::path>& files) {
  std::map<fs::path, std::vector<fs::path>> folders;
  for (const fs::path& file : files) {
    if (shard_name(file)) folders[file.parent_path()].push_back(file);
  }
  for (const auto& [folder, inside] : folders) {
    check_shard_names(folder, inside);
    check_shard_lists(folder, shard_lists(inside));
  }
}

}  // namespace skein
