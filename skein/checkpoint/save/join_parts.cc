#include "skein/checkpoint/save/join_parts.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <unordered_map>

#include "skein/base/error.h"
#include "skein/checkpoint/save/merge_parts.h"

namespace skein {
namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;
constexpr std::ptrdiff_t kForgetBytes = std::ptrdiff_t{4} << 20;
constexpr int64_t kBatchShards = int64_t{1} << 18;  // held in memory at a time

// The parts' tensors and files, with their numbers in the whole. Ranks whose parts list the same
// (of one stage and one share of a layer) are examined only once.
class Join {
 public:
  explicit Join(std::span<const SavePart> parts) : parts_(parts) {
    for (uint32_t rank = 0; rank < parts.size(); ++rank) {
      add(rank);
      parts[rank].let_go();
    }
  }

  const std::vector<ManifestFile>& files() const { return files_; }
  const std::vector<IndexTensor>& tensors() const { return tensors_; }

  // The shards of the tensors from `first` to `end`, in order within each tensor.
  void read_shards(size_t first, size_t end, std::vector<IndexShard>& shards) const {
    std::vector<size_t> next{0};  // by tensor, where its next shard goes
    for (size_t i = first; i < end; ++i) next.push_back(next.back() + tensors_[i].num_shards);
    const std::vector<size_t> begin = next;
    shards.resize(begin.back());
    for (const Listing& listing : listings_) gather(listing, first, end, next, shards);
    for (size_t i = 0; i < end - first; ++i) {
      std::sort(shards.begin() + begin[i], shards.begin() + begin[i + 1],
                [](const IndexShard& a, const IndexShard& b) {
                  return std::pair(a.box, a.range.begin) < std::pair(b.box, b.range.begin);
                });
    }
  }

 private:
  // The tensors that the parts of some ranks list, and their numbers in the whole.
  struct Listing {
    std::vector<uint32_t> ranks;
    std::vector<size_t> tensors;
    std::vector<std::vector<uint32_t>> boxes;  // by tensor
  };
  using BoxKey = std::pair<std::vector<int64_t>, std::vector<int64_t>>;

  void gather(const Listing& listing, size_t first, size_t end, std::vector<size_t>& next,
              std::vector<IndexShard>& shards) const {
    std::vector<std::pair<size_t, IndexTensor>> wanted;
    for (size_t i = 0; i < listing.tensors.size(); ++i) {
      if (listing.tensors[i] < first || listing.tensors[i] >= end) continue;
      wanted.emplace_back(i, index_of(listing.ranks[0]).tensor(static_cast<int64_t>(i)));
    }
    if (wanted.empty()) return;
    for (const uint32_t rank : listing.ranks) {
      for (const auto& [number, tensor] : wanted) {
        size_t& at = next[listing.tensors[number] - first];
        for (int64_t i = 0; i < tensor.num_shards; ++i) {
          IndexShard& shard = shards[at++];
          shard = index_of(rank).shard(tensor, i);
          shard.box = listing.boxes[number][shard.box];
          shard.file += first_file_[rank];
        }
      }
      parts_[rank].let_go();
    }
  }

  const ShardIndex& index_of(uint32_t rank) const { return parts_[rank].index(); }

  void add(uint32_t rank) {
    const ShardIndex& index = index_of(rank);
    first_file_.push_back(static_cast<uint32_t>(files_.size()));
    for (int64_t i = 0; i < index.num_files(); ++i) files_.push_back(index.file(i));
    std::vector<size_t>& alike = by_hash_[index.listing_hash()];
    const auto same = std::find_if(alike.begin(), alike.end(), [&](size_t i) {
      return index.lists_same_tensors(index_of(listings_[i].ranks[0]));
    });
    if (same == alike.end()) {
      alike.push_back(listings_.size());
      listings_.push_back(new_listing(rank));
    } else {
      Listing& listing = listings_[*same];
      listing.ranks.push_back(rank);
      for (size_t i = 0; i < listing.tensors.size(); ++i) {
        tensors_[listing.tensors[i]].num_shards += index.num_shards_of(static_cast<int64_t>(i));
      }
    }
  }

  Listing new_listing(uint32_t rank) {
    const ShardIndex& index = index_of(rank);
    Listing listing{.ranks = {rank}};
    for (int64_t i = 0; i < index.num_tensors(); ++i) {
      IndexTensor tensor = index.tensor(i);
      const auto [known, is_new] = by_name_.emplace(tensor.name, tensors_.size());
      if (is_new) {
        tensors_.push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape});
        boxes_.emplace_back();
      }
      IndexTensor& whole = tensors_[known->second];
      check_same_tensor(rank, {tensor.name, tensor.dtype, tensor.shape, {}}, whole.dtype,
                        whole.shape);
      std::vector<uint32_t> numbers;
      for (Box& box : tensor.boxes) {
        auto& boxes = boxes_[known->second];
        const auto [at, is_new_box] =
            boxes.try_emplace({box.offset, box.shape.dims()}, static_cast<uint32_t>(boxes.size()));
        if (is_new_box) whole.boxes.push_back(std::move(box));
        numbers.push_back(at->second);
      }
      whole.num_shards += tensor.num_shards;
      listing.tensors.push_back(known->second);
      listing.boxes.push_back(std::move(numbers));
    }
    return listing;
  }

  std::span<const SavePart> parts_;
  std::vector<ManifestFile> files_;
  std::vector<uint32_t> first_file_;  // by rank
  std::vector<IndexTensor> tensors_;
  std::vector<Listing> listings_;
  std::unordered_map<uint64_t, std::vector<size_t>> by_hash_;
  std::vector<std::map<BoxKey, uint32_t>> boxes_;  // by tensor
  std::unordered_map<std::string, size_t> by_name_;
};

void seek(int fd, int64_t offset, const fs::path& path) {
  if (::lseek(fd, offset, SEEK_SET) < 0) {
    fail(errno_code(errno), "cannot write {}: {}", path.string(), errno_text(errno));
  }
}

// The head contains the checksums of everything after it, and is written last.
void write_index(const Join& join, const fs::path& path, const FileOps& ops) {
  const FileDescriptor file = ops.create(path);
  const std::vector<IndexTensor>& tensors = join.tensors();
  ShardIndexWriter writer(join.files(), tensors, "");
  seek(file.get(), writer.head_bytes(), path);
  std::string waiting;
  const auto flush = [&] {
    ops.write(file.get(), std::as_bytes(std::span(waiting)), path);
    waiting.clear();
  };
  const auto write = [&](std::span<const std::byte> bytes) {
    waiting.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (waiting.size() >= kWriteBytes) flush();
  };
  std::vector<IndexShard> shards;
  for (size_t first = 0; first < tensors.size();) {
    size_t end = first;
    for (int64_t num = 0; end < tensors.size() && (end == first || num < kBatchShards); ++end) {
      num += tensors[end].num_shards;
    }
    join.read_shards(first, end, shards);
    for (const IndexShard& shard : shards) writer.add(shard, write);
    first = end;
  }
  const std::string head = writer.finish(write);
  flush();
  seek(file.get(), 0, path);
  ops.write(file.get(), std::as_bytes(std::span(head)), path);
  ops.sync(file.get(), path);
}

}  // namespace

Manifest join_parts(std::vector<SavePart> parts) {
  std::vector<Manifest> manifests;
  for (const SavePart& part : parts) manifests.push_back(part.manifest());
  return merge_parts(std::move(manifests));
}

Manifest join_parts(std::vector<SavePart> parts, const fs::path& index_path, const FileOps& ops) {
  Manifest merged;
  std::vector<TrainingState> states;
  for (SavePart& part : parts) states.push_back(std::move(part.state()));
  merged.state = merge_states(std::move(states));
  const Join join(parts);
  for (const IndexTensor& tensor : join.tensors()) {
    merged.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, {}});
  }
  write_index(join, index_path, ops);
  // Checks the file as a reader will find it.
  const MappedFile written(index_path);
  const ShardIndex index(written.bytes(), "the merged " + index_path.filename().string());
  const std::byte* kept = written.bytes().data();
  check_whole(index, [&](std::span<const std::byte> shards) {
    const std::byte* end = shards.data() + shards.size();
    if (end - kept < kForgetBytes) return;
    kept = end;
    written.forget({written.bytes().data(), end});
  });
  merged.index = {.file_bytes = static_cast<int64_t>(written.bytes().size()),
                  .head_bytes = index.head_bytes(),
                  .head_xxh3_128 = hex_of_digest(index.head_digest())};
  return merged;
}

}  // namespace skein
