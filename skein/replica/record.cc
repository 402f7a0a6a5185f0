#include "skein/replica/record.h"

#include <algorithm>
#include <charconv>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/shared/heartbeat.h"
#include "skein/base/text/json_text.h"
#include "skein/checkpoint/save/part_manifest.h"

namespace skein {
namespace {

constexpr size_t kChecksumDigits = 32;
constexpr int64_t kMostBytes = int64_t{1} << 50;  // sums of two of them fit

std::string checksum(std::string_view text) { return xxh3_128_hex(std::as_bytes(std::span(text))); }

// The head of a record, as JSON, is followed by the part's index.
OrderedJson runs_json(const CheckpointLayout& layout, const CheckpointFile& file) {
  OrderedJson runs = OrderedJson::array();
  for (const size_t position : file.layout.order) {
    const size_t index = file.specs[position];
    runs.push_back(to_json(
        {file.layout.begin[position], layout.spec_bytes[index], layout.snapshot_begin[index]}));
  }
  return runs;
}

}  // namespace

int64_t whole_number(const Json& json, int64_t most, const std::string& what) {
  if (json.is_number_unsigned() && json.get<uint64_t>() <= static_cast<uint64_t>(most)) {
    return json.get<int64_t>();
  }
  fail(ErrorCode::kInvalid, "{}: found {}, expected a whole number from 0 to {}", what,
       json_text(json).substr(0, 100), most);
}

OrderedJson to_json(const ReplicaRun& run) { return {run.begin, run.bytes, run.at}; }

ReplicaRun run_of(const Json& json, const std::string& what) {
  if (!json.is_array() || json.size() != 3) {
    fail(ErrorCode::kInvalid, "{}: found {}, expected the three numbers of a run", what,
         json_text(json).substr(0, 100));
  }
  const auto number = [&](size_t i) { return whole_number(json[i], kMostBytes, what); };
  return {number(0), number(1), number(2)};
}

int64_t place_of(const ReplicaRuns& runs, const std::string& file, int64_t begin, int64_t bytes,
                 const std::string& what) {
  const auto found = runs.find(file);
  if (found != runs.end()) {
    for (const ReplicaRun& run : found->second) {
      if (begin < run.begin || bytes < 0) continue;
      const int64_t inside = begin - run.begin;
      if (inside <= run.bytes && bytes <= run.bytes - inside) return run.at + inside;
    }
  }
  fail(ErrorCode::kInvalid, "{}: {} bytes of {} from {} on are not in it", what, bytes, file,
       begin);
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
      exact_json(OrderedJson{{"files", files}, {"configuration", state.configuration}},
                 "the record of a copy");
  const std::string rest = fmt::format("{}\n", head.size()) + head + part_bytes(manifest);
  return checksum(rest) + rest;
}

ReplicaRecord::ReplicaRecord(const std::string& bytes, const std::string& what) : what_(what) {
  const std::string_view all = bytes;
  if (all.size() < kChecksumDigits ||
      checksum(all.substr(kChecksumDigits)) != all.substr(0, kChecksumDigits)) {
    fail(ErrorCode::kCorrupt, "{}: its record does not match its checksum", what_);
  }
  const std::string_view rest = all.substr(kChecksumDigits);
  const size_t line = std::min(rest.find('\n'), rest.size());
  size_t size = 0;
  const auto number = std::from_chars(rest.data(), rest.data() + line, size);
  const bool has_size = line < rest.size() && number.ptr == rest.data() + line;
  if (!has_size || number.ec != std::errc() || size > rest.size() - line - 1) {
    fail(ErrorCode::kInvalid, "{}: its record is not a rank's", what_);
  }
  const Json head = parse_json(rest.substr(line + 1, size), what_);
  part_ = rest.substr(line + 1 + size);
  try {
    configuration_ = exact_json(head.at("configuration"), what_);
    for (const auto& [name, runs] : head.at("files").items()) {
      for (const Json& run : runs) runs_[name].push_back(run_of(run, what_));
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
      heartbeat::tick();
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
