#include "skein/checkpoint/format/shard_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/checkpoint/format/shard_index_format.h"

namespace skein {

static_assert(std::endian::native == std::endian::little, "numbers lie in the file as in memory");

using namespace shard_index_format;

Digest digest_of_hex(std::string_view hex) {
  Digest digest = {};
  const auto nibble = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
  for (size_t i = 0; i < digest.size() && 2 * i + 1 < hex.size(); ++i) {
    digest[i] = static_cast<std::byte>(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
  }
  return digest;
}

std::string hex_of_digest(const Digest& digest) {
  std::string hex;
  for (const std::byte byte : digest) {
    hex += "0123456789abcdef"[std::to_integer<int>(byte >> 4)];
    hex += "0123456789abcdef"[std::to_integer<int>(byte & std::byte{15})];
  }
  return hex;
}

std::string describe(const IndexTensor& tensor, const IndexShard& shard) {
  const Box& box = tensor.boxes[shard.box];
  if (shard.range.count == box.shape.num_elements()) return box.to_string();
  return fmt::format("elements {} to {} of {}", shard.range.begin,
                     shard.range.begin + shard.range.count, box.to_string());
}

ShardIndex::ShardIndex(std::span<const std::byte> bytes, std::string what)
    : bytes_(bytes), what_(std::move(what)) {
  if (static_cast<int64_t>(bytes_.size()) < kHeaderBytes ||
      std::memcmp(bytes_.data(), kMagic.data(), kMagic.size()) != 0) {
    refuse("expected an index of shards");
  }
  std::memcpy(head_digest_.data(), bytes_.data() + kDigestAt, head_digest_.size());
  head_bytes_ = count(kCountsAt);
  num_files_ = count(kCountsAt + 8);
  num_tensors_ = count(kCountsAt + 16);
  num_sizes_ = count(kCountsAt + 24);
  const int64_t name_bytes = count(kCountsAt + 32), note_bytes = count(kCountsAt + 40);
  num_shards_ = count(kCountsAt + 48);
  // Every count is at most the file size, so these sums cannot overflow.
  files_at_ = kHeaderBytes;
  tensors_at_ = files_at_ + num_files_ * kFileBytes;
  sizes_at_ = tensors_at_ + num_tensors_ * kTensorBytes;
  const int64_t names_at = sizes_at_ + num_sizes_ * 8;
  const int64_t note_at = names_at + padded(name_bytes);
  blocks_at_ = note_at + padded(note_bytes);
  const int64_t num_blocks = blocks_of(num_shards_);
  if (head_bytes_ != blocks_at_ + num_blocks * 16 ||
      static_cast<int64_t>(bytes_.size()) != head_bytes_ + num_shards_ * kShardBytes) {
    refuse(fmt::format("has {} bytes, which its counts do not add up to", bytes_.size()));
  }
  const auto after_digest = bytes_.first(head_bytes_).subspan(kCountsAt);
  if (digest_of_hex(xxh3_128_hex(after_digest)) != head_digest_) {
    fail(ErrorCode::kCorrupt, "{}: its head does not match its checksum: the file was changed",
         what_);
  }
  const auto* text = reinterpret_cast<const char*>(bytes_.data());
  names_ = {text + names_at, static_cast<size_t>(name_bytes)};
  note_ = {text + note_at, static_cast<size_t>(note_bytes)};
  block_is_good_ = std::make_unique<std::atomic<bool>[]>(static_cast<size_t>(num_blocks));
  check_head();
}

void ShardIndex::refuse(const std::string& why) const {
  fail(ErrorCode::kInvalid, "{}: {}", what_, why);
}

uint64_t ShardIndex::word(int64_t offset) const {
  uint64_t value = 0;
  std::memcpy(&value, bytes_.data() + offset, sizeof(value));
  return value;
}

int64_t ShardIndex::count(int64_t offset) const {
  const uint64_t value = word(offset);
  if (value > bytes_.size()) refuse(fmt::format("counts {} of something", value));
  return static_cast<int64_t>(value);
}

std::string_view ShardIndex::name(int64_t entry) const {
  const uint64_t begin = word(entry), bytes = word(entry + 8);
  if (begin > names_.size() || bytes > names_.size() - begin) refuse("a name lies outside it");
  if (bytes > kMaxNameBytes) refuse(fmt::format("a name has {} bytes", bytes));
  return names_.substr(begin, bytes);
}

ManifestFile ShardIndex::file(int64_t i) const {
  const int64_t at = files_at_ + i * kFileBytes;
  ManifestFile file{.name = std::string(name(at)),
                    .file_bytes = static_cast<int64_t>(word(at + 16)),
                    .header_bytes = static_cast<int64_t>(word(at + 24))};
  Digest digest;
  std::memcpy(digest.data(), bytes_.data() + at + 32, digest.size());
  file.header_xxh3_128 = hex_of_digest(digest);
  return file;
}

std::string_view ShardIndex::tensor_name(int64_t i) const {
  return name(tensors_at_ + i * kTensorBytes);
}

int64_t ShardIndex::num_shards_of(int64_t i) const {
  return static_cast<int64_t>(word(tensors_at_ + i * kTensorBytes + 56));
}

uint64_t ShardIndex::listing_hash() const {
  return hash_name({reinterpret_cast<const char*>(table().data()), table().size()});
}

bool ShardIndex::lists_same_tensors(const ShardIndex& other) const {
  const auto own = table(), others = other.table();
  if (num_tensors_ != other.num_tensors_ || own.size() != others.size() ||
      std::memcmp(own.data(), others.data(), own.size()) != 0) {
    return false;
  }
  for (int64_t i = 0; i < num_tensors_; ++i) {
    if (tensor_name(i) != other.tensor_name(i)) return false;
  }
  return true;
}

IndexTensor ShardIndex::tensor(int64_t i) const {
  IndexTensor tensor;
  read_tensor(i, tensor);
  return tensor;
}

void ShardIndex::read_tensor(int64_t i, IndexTensor& tensor) const {
  const int64_t at = tensors_at_ + i * kTensorBytes;
  tensor.name = name(at);
  const uint64_t dtype = word(at + 16), rank = word(at + 24), first = word(at + 32),
                 num_boxes = word(at + 40), first_shard = word(at + 48), num = word(at + 56);
  const auto total = static_cast<uint64_t>(num_shards_), sizes = static_cast<uint64_t>(num_sizes_);
  if (dtype >= kDTypes.size() || rank > kMaxTensorRank || num_boxes > num || first > sizes ||
      rank * (1 + 2 * num_boxes) > sizes - first || first_shard > total ||
      num > total - first_shard) {
    refuse(fmt::format("tensor {} has an impossible name, type, shape or list of shards", i));
  }
  tensor.dtype = kDTypes[dtype];
  int64_t size_at = sizes_at_ + static_cast<int64_t>(first) * 8;
  const auto next = [&] {
    size_at += 8;
    return static_cast<int64_t>(word(size_at - 8));
  };
  const auto read_shape = [&](Shape& shape) {
    if (static_cast<uint64_t>(shape.rank()) != rank) shape = Shape(std::vector<int64_t>(rank));
    for (int dim = 0; dim < shape.rank(); ++dim) shape.set_dim(dim, next());
  };
  read_shape(tensor.shape);
  tensor.boxes.resize(num_boxes);
  for (Box& box : tensor.boxes) {
    box.offset.resize(rank);
    for (int64_t& offset : box.offset) offset = next();
    read_shape(box.shape);
  }
  tensor.first_shard = static_cast<int64_t>(first_shard);
  tensor.num_shards = static_cast<int64_t>(num);
}

void ShardIndex::check_head() {
  for (int64_t i = 0; i < num_files_; ++i) {
    const ManifestFile file = this->file(i);
    if (!is_shard_file_name(file.name) || file.header_bytes < 8 ||
        file.file_bytes < file.header_bytes) {
      refuse(fmt::format("file {} has an impossible name, size or checksum", i));
    }
  }
  int64_t next_shard = 0;
  IndexTensor tensor;
  for (int64_t i = 0; i < num_tensors_; ++i) {
    read_tensor(i, tensor);
    const bool is_sane = std::all_of(tensor.shape.dims().begin(), tensor.shape.dims().end(),
                                     [](int64_t size) { return size >= 1; }) &&
                         checked_bytes(tensor.shape, size_of(tensor.dtype)) &&
                         std::all_of(tensor.boxes.begin(), tensor.boxes.end(),
                                     [&](const Box& box) { return box.inside(tensor.shape); });
    if (!is_sane || tensor.first_shard != next_shard) {
      refuse(fmt::format("tensor {}: its shape, boxes or shards cannot be", i));
    }
    next_shard += tensor.num_shards;
  }
  if (next_shard != num_shards_) refuse("has shards of no tensor");
}

void ShardIndex::check_block(int64_t block) const {
  std::atomic<bool>& is_good = block_is_good_[static_cast<size_t>(block)];
  if (is_good.load(std::memory_order_relaxed)) return;
  const int64_t first = block * kBlockShards;
  const int64_t count = std::min(kBlockShards, num_shards_ - first);
  const auto bytes = bytes_.subspan(head_bytes_ + first * kShardBytes, count * kShardBytes);
  const Digest actual = digest_of_hex(xxh3_128_hex(bytes));
  if (std::memcmp(actual.data(), bytes_.data() + blocks_at_ + block * 16, actual.size()) != 0) {
    fail(ErrorCode::kCorrupt, "{}: shards from {} on do not match their checksum", what_, first);
  }
  is_good.store(true, std::memory_order_relaxed);
}

IndexShard ShardIndex::read_shard(int64_t i) const {
  check_block(i / kBlockShards);
  return decode_shard(bytes_.data() + head_bytes_ + i * kShardBytes);
}

IndexShard ShardIndex::shard(const IndexTensor& tensor, int64_t i) const {
  const IndexShard shard = read_shard(tensor.first_shard + i);
  const bool named = shard.box < tensor.boxes.size() && shard.file < num_files_;
  const int64_t elements = named ? tensor.boxes[shard.box].shape.num_elements() : 0;
  if (!named || shard.range.count < 1 || shard.range.count > elements || shard.range.begin < 0 ||
      shard.range.begin > elements - shard.range.count) {
    refuse(fmt::format("shard {} of tensor \"{}\" does not lie in it", i, tensor.name));
  }
  const int64_t at = files_at_ + static_cast<int64_t>(shard.file) * kFileBytes;
  const auto file_bytes = static_cast<int64_t>(word(at + 16));
  const auto header_bytes = static_cast<int64_t>(word(at + 24));
  const int64_t bytes = shard.range.count * size_of(tensor.dtype);
  if (shard.begin < header_bytes || bytes > file_bytes || shard.begin > file_bytes - bytes) {
    refuse(fmt::format("shard {} of tensor \"{}\" does not lie in its file", i, tensor.name));
  }
  return shard;
}

void ShardIndex::for_each_near(const IndexTensor& tensor, const Box& wanted,
                               const std::function<void(const IndexShard&)>& visit) const {
  for (uint32_t b = 0; b < tensor.boxes.size(); ++b) {
    const Box& box = tensor.boxes[b];
    const std::optional<Box> shared = intersect(box, wanted);
    if (!shared) continue;
    std::vector<int64_t> last = shared->offset;
    for (int dim = 0; dim < box.shape.rank(); ++dim) last[dim] += shared->shape.dim(dim) - 1;
    const int64_t first = index_inside(box, shared->offset), end = index_inside(box, last) + 1;
    // The first shard that ends after `first`, by binary search.
    int64_t low = 0, high = tensor.num_shards;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      const IndexShard shard = this->shard(tensor, middle);
      const bool is_before =
          shard.box != b ? shard.box < b : shard.range.begin + shard.range.count <= first;
      is_before ? low = middle + 1 : high = middle;
    }
    for (; low < tensor.num_shards; ++low) {
      const IndexShard shard = this->shard(tensor, low);
      if (shard.box != b || shard.range.begin >= end) break;
      visit(shard);
    }
  }
}

}  // namespace skein
