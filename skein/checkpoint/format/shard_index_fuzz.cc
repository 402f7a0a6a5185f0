// Any bytes with fitting checksums must give an Error, or an index whose every file, tensor and
// shard can be read; the work is bounded by the number of bytes.
#include <algorithm>
#include <cstring>
#include <string>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/checkpoint/format/shard_index_format.h"

namespace {

using namespace skein;
using namespace skein::shard_index_format;

uint64_t word(const std::string& bytes, int64_t at) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

void seal(std::string& bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  const auto put = [&](int64_t at, int64_t begin, int64_t end) {
    const Digest digest =
        digest_of_hex(xxh3_128_hex(std::as_bytes(std::span(bytes).subspan(begin, end - begin))));
    std::memcpy(bytes.data() + at, digest.data(), digest.size());
  };
  const uint64_t head = word(bytes, kCountsAt), shards = word(bytes, kCountsAt + 48);
  if (head > bytes.size() || shards > bytes.size()) return;
  const auto head_bytes = static_cast<int64_t>(head), num_shards = static_cast<int64_t>(shards);
  const int64_t blocks_at = head_bytes - blocks_of(num_shards) * 16;
  if (blocks_at < kHeaderBytes || head_bytes + num_shards * ShardIndex::kShardBytes != size) return;
  for (int64_t block = 0; block < blocks_of(num_shards); ++block) {
    const int64_t first = block * ShardIndex::kBlockShards;
    const int64_t count = std::min(ShardIndex::kBlockShards, num_shards - first);
    put(blocks_at + block * 16, head_bytes + first * ShardIndex::kShardBytes,
        head_bytes + (first + count) * ShardIndex::kShardBytes);
  }
  put(kDigestAt, kCountsAt, head_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (size >= static_cast<size_t>(kHeaderBytes)) {
    bytes.replace(0, kMagic.size(), kMagic);
    seal(bytes);
  }
  try {
    const ShardIndex index(std::as_bytes(std::span(bytes)), "fuzz");
    for (int64_t i = 0; i < index.num_tensors(); ++i) {
      const IndexTensor tensor = index.tensor(i);
      index.for_each_near(tensor, Box::whole(tensor.shape), [](const IndexShard&) {});
    }
    check_whole(index);
  } catch (const Error&) {
  }
  return 0;
}
