// Writes an index, and checks a whole one.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/checkpoint/format/cover_sum.h"
#include "skein/checkpoint/format/shard_index_format.h"

namespace skein {

using namespace shard_index_format;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string raw(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

void ShardIndexWriter::put(uint64_t word) {
  head_.append(reinterpret_cast<const char*>(&word), sizeof(word));
}

ShardIndexWriter::ShardIndexWriter(std::span<const ManifestFile> files,
                                   std::span<const IndexTensor> tensors, std::string_view note) {
  uint64_t num_sizes = 0, num_shards = 0;
  std::string names;
  for (const ManifestFile& file : files) names += file.name;
  for (const IndexTensor& tensor : tensors) {
    names += tensor.name;
    num_sizes += tensor.shape.dims().size() * (1 + 2 * tensor.boxes.size());
    num_shards += tensor.num_shards;
  }
  num_shards_ = static_cast<int64_t>(num_shards);
  head_.assign(kMagic).append(16, '\0');
  const auto name_bytes = static_cast<int64_t>(names.size());
  const auto note_bytes = static_cast<int64_t>(note.size());
  const auto num_files = static_cast<int64_t>(files.size());
  const auto num_tensors = static_cast<int64_t>(tensors.size());
  blocks_at_ = kHeaderBytes + num_files * kFileBytes + num_tensors * kTensorBytes +
               static_cast<int64_t>(num_sizes) * 8 + padded(name_bytes) + padded(note_bytes);
  put(static_cast<uint64_t>(blocks_at_ + blocks_of(num_shards_) * 16));
  for (const uint64_t count :
       {files.size(), tensors.size(), num_sizes, names.size(), note.size(), num_shards}) {
    put(count);
  }
  uint64_t name_at = 0, size_at = 0, shard_at = 0;
  const auto put_name = [&](const std::string& name) {
    put(name_at);
    put(name.size());
    name_at += name.size();
  };
  for (const ManifestFile& file : files) {
    put_name(file.name);
    put(static_cast<uint64_t>(file.file_bytes));
    put(static_cast<uint64_t>(file.header_bytes));
    head_ += raw(digest_of_hex(file.header_xxh3_128));
  }
  for (const IndexTensor& tensor : tensors) {
    put_name(tensor.name);
    put(std::find(kDTypes.begin(), kDTypes.end(), tensor.dtype) - kDTypes.begin());
    for (const uint64_t word : {tensor.shape.dims().size(), size_at, tensor.boxes.size(), shard_at,
                                static_cast<uint64_t>(tensor.num_shards)}) {
      put(word);
    }
    size_at += tensor.shape.dims().size() * (1 + 2 * tensor.boxes.size());
    shard_at += tensor.num_shards;
  }
  for (const IndexTensor& tensor : tensors) {
    for (const int64_t size : tensor.shape.dims()) put(static_cast<uint64_t>(size));
    for (const Box& box : tensor.boxes) {
      for (const int64_t offset : box.offset) put(static_cast<uint64_t>(offset));
      for (const int64_t size : box.shape.dims()) put(static_cast<uint64_t>(size));
    }
  }
  names.resize(padded(name_bytes));
  head_ += names;
  head_ += note;
  head_.resize(blocks_at_ + blocks_of(num_shards_) * 16);
}

void ShardIndexWriter::add(const IndexShard& shard, const Write& write) {
  const size_t at = block_.size();
  block_.resize(at + ShardIndex::kShardBytes);
  encode_shard(shard, block_.data() + at);
  ++num_added_;
  if (num_added_ % ShardIndex::kBlockShards == 0) end_block(write);
}

void ShardIndexWriter::end_block(const Write& write) {
  const std::string digest = raw(digest_of_hex(xxh3_128_hex(bytes_of(block_))));
  const int64_t block = (num_added_ - 1) / ShardIndex::kBlockShards;
  head_.replace(blocks_at_ + block * 16, digest.size(), digest);
  write(bytes_of(block_));
  block_.clear();
}

std::string ShardIndexWriter::finish(const Write& write) {
  if (num_added_ != num_shards_) {
    fail(ErrorCode::kInternal, "an index of {} shards got {}", num_shards_, num_added_);
  }
  if (!block_.empty()) end_block(write);
  const auto after_digest = bytes_of(head_).subspan(kCountsAt);
  const std::string digest = raw(digest_of_hex(xxh3_128_hex(after_digest)));
  head_.replace(kDigestAt, digest.size(), digest);
  return std::move(head_);
}

std::string shard_index_of(const Manifest& manifest, std::string_view note) {
  std::unordered_map<std::string_view, uint32_t> files;
  for (const ManifestFile& file : manifest.files) {
    files.emplace(file.name, static_cast<uint32_t>(files.size()));
  }
  std::vector<IndexTensor> tensors;
  std::vector<IndexShard> shards;
  for (const ManifestTensor& from : manifest.tensors) {
    IndexTensor tensor{.name = from.name, .dtype = from.dtype, .shape = from.shape};
    tensor.num_shards = static_cast<int64_t>(from.shards.size());
    std::map<std::pair<std::vector<int64_t>, std::vector<int64_t>>, uint32_t> boxes;
    for (const Shard& shard : from.shards) {
      const auto [box, is_new] = boxes.try_emplace({shard.slice.offset, shard.slice.shape.dims()},
                                                   static_cast<uint32_t>(boxes.size()));
      if (is_new) tensor.boxes.push_back(shard.slice);
      shards.push_back({.box = box->second,
                        .file = files.at(shard.file),
                        .range = shard.elements(),
                        .begin = shard.begin,
                        .xxh3_128 = digest_of_hex(shard.xxh3_128)});
    }
    std::stable_sort(shards.end() - tensor.num_shards, shards.end(),
                     [](const IndexShard& a, const IndexShard& b) {
                       return std::pair(a.box, a.range.begin) < std::pair(b.box, b.range.begin);
                     });
    tensors.push_back(std::move(tensor));
  }
  ShardIndexWriter writer(manifest.files, tensors, note);
  std::string body;
  const auto write = [&body](std::span<const std::byte> bytes) {
    body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  for (const IndexShard& shard : shards) writer.add(shard, write);
  return writer.finish(write) + body;
}

namespace {

void check_tensor(const ShardIndex& index, const IndexTensor& tensor,
                  std::vector<CoverSum>& files) {
  const auto refuse = [&](const std::string& why) {
    fail(ErrorCode::kInvalid, "{}: tensor \"{}\": {}", index.what(), tensor.name, why);
  };
  const std::string problem = tiling_error(tensor.shape, tensor.boxes);
  if (!problem.empty()) refuse(problem);
  uint32_t box = 0;
  int64_t next = 0;  // element of the box
  const auto end_box = [&] {
    const int64_t elements = tensor.boxes[box].shape.num_elements();
    if (next != elements) {
      refuse(fmt::format("its shards cover {} of the {} elements of {}", next, elements,
                         tensor.boxes[box].to_string()));
    }
  };
  for (int64_t i = 0; i < tensor.num_shards; ++i) {
    const IndexShard shard = index.shard(tensor, i);
    while (shard.box > box) {
      end_box();
      ++box;
      next = 0;
    }
    if (shard.box < box || shard.range.begin != next) {
      refuse(fmt::format("a shard of {} begins at element {}, expected {}",
                         tensor.boxes[shard.box].to_string(), shard.range.begin, next));
    }
    next += shard.range.count;
    files[shard.file].add(shard.begin, index.end_of(tensor, shard));
  }
  while (box < tensor.boxes.size()) {
    end_box();
    ++box;
    next = 0;
  }
}

}  // namespace

void check_whole(const ShardIndex& index,
                 const std::function<void(std::span<const std::byte>)>& done_with) {
  std::vector<CoverSum> files(static_cast<size_t>(index.num_files()));
  std::unordered_map<std::string_view, int64_t> names;
  for (int64_t i = 0; i < index.num_tensors(); ++i) {
    if (!names.emplace(index.tensor_name(i), i).second) {
      fail(ErrorCode::kInvalid, "{}: tensor \"{}\" is listed twice", index.what(),
           index.tensor_name(i));
    }
    const IndexTensor tensor = index.tensor(i);
    check_tensor(index, tensor, files);
    if (done_with) done_with(index.shards_of(tensor));
  }
  std::unordered_map<std::string, int64_t> file_names;
  for (int64_t i = 0; i < index.num_files(); ++i) {
    const ManifestFile file = index.file(i);
    if (!file_names.emplace(file.name, i).second) {
      fail(ErrorCode::kInvalid, "{}: file \"{}\" is listed twice", index.what(), file.name);
    }
    CoverSum whole;
    whole.add(file.header_bytes, file.file_bytes);
    if (files[static_cast<size_t>(i)] != whole) {
      fail(ErrorCode::kInvalid, "{}: its shards do not cover every byte of \"{}\" exactly once",
           index.what(), file.name);
    }
  }
}

}  // namespace skein
