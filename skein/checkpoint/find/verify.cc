// Full verification of checkpoints.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <unordered_map>

#include "skein/base/machine/cores.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/threads/mutex.h"
#include "skein/checkpoint/find/reader.h"
#include "skein/checkpoint/format/safetensors.h"
#include "skein/checkpoint/format/stored_file.h"

namespace skein {
namespace {

constexpr size_t kReadBytes = size_t{4} << 20;
constexpr int kMaxThreads = 8;

// The index is mapped elsewhere: reading it first turns an unreadable disk into an error, not a
// signal.
void read_through(const fs::path& path) {
  const StoredFile file(path);
  std::vector<std::byte> buffer(kReadBytes);
  for (int64_t at = 0; at < file.num_bytes();) {
    const auto part =
        std::span(buffer).first(std::min<size_t>(buffer.size(), file.num_bytes() - at));
    file.read(at, part);
    at += static_cast<int64_t>(part.size());
  }
}

// What is verified of a checkpoint, as one numbered list: the headers of its files, then its
// shards.
class VerifiedParts {
 public:
  VerifiedParts(const fs::path& folder, const ShardIndex& index) : folder_(folder), index_(index) {
    for (int64_t i = 0; i < index.num_files(); ++i) files_.push_back(index.file(i));
    for (int64_t i = 0; i < index.num_tensors(); ++i) tensors_.push_back(index.tensor(i));
  }

  const fs::path& folder() const { return folder_; }
  const std::vector<ManifestFile>& files() const { return files_; }
  fs::path path(size_t file) const { return folder_ / files_[file].name; }
  size_t size() const { return files_.size() + static_cast<size_t>(index_.num_shards()); }

  // Shard `i` of all tensors.
  struct ShardPlace {
    const IndexTensor* tensor;
    IndexShard shard;
  };
  ShardPlace place(int64_t i) const {
    const auto behind = std::upper_bound(tensors_.begin(), tensors_.end(), i,
                                         [](int64_t value, const auto& tensor) {
                                           return value < tensor.first_shard + tensor.num_shards;
                                         });
    return {&*behind, index_.shard(*behind, i - behind->first_shard)};
  }
  int64_t end_of(const ShardPlace& place) const {
    return index_.end_of(*place.tensor, place.shard);
  }

  void verify(size_t piece, std::vector<std::byte>& buffer) const {
    if (piece < files_.size()) {
      const ManifestFile& file = files_[piece];
      const std::string found = hash_of(piece, 0, file.header_bytes, buffer);
      if (found != file.header_xxh3_128) {
        refuse(path(piece), "its header", found, file.header_xxh3_128);
      }
      return;
    }
    const ShardPlace at = place(static_cast<int64_t>(piece - files_.size()));
    const std::string found = hash_of(at.shard.file, at.shard.begin, end_of(at), buffer);
    const std::string expected = hex_of_digest(at.shard.xxh3_128);
    if (found == expected) return;
    refuse(path(at.shard.file),
           fmt::format("tensor \"{}\" {}", at.tensor->name, describe(*at.tensor, at.shard)), found,
           expected);
  }

 private:
  [[noreturn]] static void refuse(const fs::path& path, const std::string& what,
                                  const std::string& found, const std::string& expected) {
    fail(ErrorCode::kCorrupt, "{}: {} has checksum {}, expected {}", path.string(), what, found,
         expected);
  }

  std::string hash_of(size_t file, int64_t begin, int64_t end,
                      std::vector<std::byte>& buffer) const {
    const StoredFile stored(path(file), files_[file].file_bytes);
    Xxh3Stream hash;
    for (int64_t at = begin; at < end;) {
      const auto part = std::span(buffer).first(std::min<size_t>(buffer.size(), end - at));
      stored.read(at, part);
      hash.update(part);
      at += static_cast<int64_t>(part.size());
    }
    return hash.hex();
  }

  fs::path folder_;
  const ShardIndex& index_;
  std::vector<ManifestFile> files_;
  std::vector<IndexTensor> tensors_;
};

void verify_sizes(const VerifiedParts& pieces) {
  for (size_t i = 0; i < pieces.files().size(); ++i) {
    const fs::path path = pieces.path(i);
    const int64_t found = StoredFile(path).num_bytes(), expected = pieces.files()[i].file_bytes;
    if (found != expected) {
      fail(ErrorCode::kCorrupt, "{} has {} bytes, expected {}", path.string(), found, expected);
    }
  }
}

// The shards of one tensor in one file are one tensor of that file's header: of the box's shape if
// they are one box, otherwise of one dim.
bool header_agrees(const SafetensorsEntry& entry, const VerifiedParts& pieces,
                   std::span<const VerifiedParts::ShardPlace> places) {
  int64_t elements = 0, end = entry.begin;
  for (const VerifiedParts::ShardPlace& place : places) {
    if (place.shard.begin != end) return false;
    end = pieces.end_of(place);
    elements += place.shard.range.count;
  }
  const IndexTensor& tensor = *places[0].tensor;
  Shape shape = {elements};
  if (places.size() == 1) {
    const auto boxes = boxes_of_range(tensor.boxes[places[0].shard.box], places[0].shard.range);
    if (boxes.size() == 1) shape = boxes[0].shape;
  }
  return end == entry.end && entry.shape == shape &&
         entry.dtype == to_safetensors_dtype(tensor.dtype);
}

// Checks that a file's own header agrees with the table of shards.
void verify_header(const VerifiedParts& pieces, size_t file,
                   std::vector<VerifiedParts::ShardPlace> places) {
  std::sort(places.begin(), places.end(),
            [](const VerifiedParts::ShardPlace& a, const VerifiedParts::ShardPlace& b) {
              return a.shard.begin < b.shard.begin;
            });
  const std::string name = pieces.path(file).string();
  const ManifestFile& listed = pieces.files()[file];
  const std::string head = StoredFile(name, listed.file_bytes).text(listed.header_bytes);
  const SafetensorsHeader header =
      parse_safetensors_header(std::as_bytes(std::span(head)), listed.file_bytes, name);
  std::unordered_map<std::string_view, const SafetensorsEntry*> entries;
  for (const SafetensorsEntry& entry : header.entries) entries.emplace(entry.name, &entry);
  for (size_t i = 0, end = 0; i < places.size(); i = end) {
    while (end < places.size() && places[end].tensor == places[i].tensor) ++end;
    const auto entry = entries.find(places[i].tensor->name);
    if (entry == entries.end() ||
        !header_agrees(*entry->second, pieces, std::span(places).subspan(i, end - i))) {
      fail(ErrorCode::kCorrupt, "{}: its header and manifest.json disagree about tensor \"{}\"",
           name, places[i].tensor->name);
    }
  }
}

// One file after another, since the headers of thousands of files do not fit in memory.
void verify_headers(const VerifiedParts& pieces, int64_t num_shards) {
  std::vector<uint32_t> first(pieces.files().size() + 1), order(static_cast<size_t>(num_shards));
  const auto file_of = [&](int64_t i) { return pieces.place(i).shard.file; };
  for (int64_t i = 0; i < num_shards; ++i) ++first[file_of(i) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<uint32_t> next = first;
  for (int64_t i = 0; i < num_shards; ++i) order[next[file_of(i)]++] = static_cast<uint32_t>(i);
  for (size_t file = 0; file < pieces.files().size(); ++file) {
    std::vector<VerifiedParts::ShardPlace> places;
    for (uint32_t i = first[file]; i < first[file + 1]; ++i)
      places.push_back(pieces.place(order[i]));
    verify_header(pieces, file, std::move(places));
  }
}

void verify_pieces(const VerifiedParts& pieces, int num_threads) {
  std::atomic<size_t> next = 0;
  Mutex mutex;
  std::pair<size_t, std::optional<Error>> first = {pieces.size(), std::nullopt};
  const auto work = [&] {
    std::vector<std::byte> buffer(kReadBytes);
    for (size_t i = next++; i < pieces.size(); i = next++) {
      try {
        pieces.verify(i, buffer);
      } catch (const Error& error) {
        const Lock lock(mutex);
        if (i < first.first) first = {i, error};
        next = pieces.size();  // one error is enough: the other threads stop
      }
    }
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < num_threads; ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  if (first.second) throw *first.second;
}

}  // namespace

Result<VerifyReport> verify_checkpoint(const fs::path& path, int num_threads) {
  return try_run([&] {
    const auto start = std::chrono::steady_clock::now();
    const CheckpointReader reader(path);
    const ShardIndex& index = reader.shards();
    const auto named = step_of_folder(path);
    if (named && *named != reader.state().step) {
      fail(ErrorCode::kCorrupt, "{} says step {}, but its folder is {}",
           (path / "manifest.json").string(), reader.state().step, path.filename().string());
    }
    if (num_threads <= 0) {
      num_threads = std::min(num_cores(), kMaxThreads);
    }
    if (reader.manifest().index) read_through(path / reader.manifest().index->file);
    check_whole(index);
    const VerifiedParts pieces(path, index);
    verify_sizes(pieces);
    verify_pieces(pieces, num_threads);
    verify_headers(pieces, index.num_shards());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return VerifyReport{reader.state().step, reader.total_bytes(), index.num_shards(),
                        seconds.count()};
  });
}

}  // namespace skein
