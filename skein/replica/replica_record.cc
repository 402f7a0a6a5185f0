#include "skein/replica/replica_record.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/hash.h"
#include "skein/checkpoint/part_manifest.h"

namespace skein {
namespace {

// The head of a record, as JSON, is followed by the part's index.
OrderedJson runs_json(const CheckpointLayout& layout, const CheckpointFile& file) {
  OrderedJson runs = OrderedJson::array();
  for (const size_t position : file.layout.order) {
    const size_t index = file.specs[position];
    runs.push_back(
        {file.layout.begin[position], layout.spec_bytes[index], layout.snapshot_begin[index]});
  }
  return runs;
}

}  // namespace

int64_t place_of(const ReplicaRuns& runs, const std::string& file, int64_t begin, int64_t bytes,
                 const std::string& what) {
  const auto found = runs.find(file);
  if (found != runs.end()) {
    for (const ReplicaRun& run : found->second) {
      const int64_t inside = begin - run.begin;
      if (inside >= 0 && inside <= run.bytes && bytes <= run.bytes - inside) return run.at + inside;
    }
  }
  fail(ErrorCode::kInvalid, "{}: bytes {} to {} of {} are not in it", what, begin, begin + bytes,
       file);
}

std::string ReplicaRecord::make(const CheckpointLayout& layout, std::span<const std::byte> snapshot,
                                const TrainingState& state) {
  Manifest manifest{.state = state};
  const auto checksums = [](const TensorSpec&, std::span<const std::byte> values,
                            std::span<const int64_t> bytes) {
    std::vector<std::string> sums;
    for (const int64_t count : bytes) {
      sums.push_back(xxh3_128_hex(values.first(count)));
      values = values.subspan(count);
    }
    return sums;
  };
  OrderedJson files = OrderedJson::object();
  for (const CheckpointFile& file : layout.files) {
    add_file(layout, file, snapshot, /*in_boxes=*/true, checksums, manifest);
    files[file.name] = runs_json(layout, file);
  }
  add_tensors_of_others(layout, manifest);
  const std::string head =
      OrderedJson{{"files", files}, {"configuration", state.configuration}}.dump();
  return fmt::format("{}\n", head.size()) + head + part_bytes(manifest);
}

ReplicaRecord::ReplicaRecord(const std::string& bytes, const std::string& what) : what_(what) {
  const size_t line = bytes.find('\n');
  size_t size = 0;
  const bool has_size =
      line != bytes.npos && line > 0 && line < 12 && bytes.find_first_not_of("0123456789") == line;
  if (has_size) size = std::stoull(bytes.substr(0, line));
  if (!has_size || size > bytes.size() - line - 1) {
    fail(ErrorCode::kInvalid, "{}: its record is not a rank's", what_);
  }
  const Json head = parse_json(std::string_view(bytes).substr(line + 1, size), what_);
  part_ = bytes.substr(line + 1 + size);
  try {
    configuration_ = head.at("configuration").dump();
    for (const auto& [name, runs] : head.at("files").items()) {
      for (const Json& run : runs) runs_[name].push_back({run.at(0), run.at(1), run.at(2)});
    }
  } catch (const Json::exception& error) {
    fail(ErrorCode::kInvalid, "{}: its record is not a rank's: {}", what_, error.what());
  }
}

SavePart ReplicaRecord::take_part() {
  SavePart part(std::move(part_), what_);
  part.state().configuration = Json::parse(configuration_);
  return part;
}

void ReplicaRecord::verify(std::span<const std::byte> data) const {
  const SavePart part(std::string(part_), what_);
  const ShardIndex& index = part.index();
  for (int64_t i = 0; i < index.num_tensors(); ++i) {
    const IndexTensor tensor = index.tensor(i);
    for (int64_t j = 0; j < tensor.num_shards; ++j) {
      const IndexShard shard = index.shard(tensor, j);
      const int64_t bytes = index.end_of(tensor, shard) - shard.begin;
      const int64_t at = place_of(runs_, index.file(shard.file).name, shard.begin, bytes, what_);
      if (at > std::ssize(data) || bytes > std::ssize(data) - at ||
          digest_of_hex(xxh3_128_hex(data.subspan(at, bytes))) != shard.xxh3_128) {
        fail(ErrorCode::kCorrupt, "{}: tensor \"{}\" {} does not match its checksum", what_,
             tensor.name, describe(tensor, shard));
      }
    }
  }
}

}  // namespace skein
