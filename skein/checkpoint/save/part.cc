#include "skein/checkpoint/save/part.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"

namespace skein {
namespace {

// This rank's part of the state, as a manifest without tensors.
std::string note_of(const Manifest& own) {
  Manifest note{.state = own.state};
  const auto& first = own.state.first_lane;
  note.state.lanes = Json{{"first_lane", first ? Json(*first) : Json()},
                          {"lanes", first ? own.state.lanes : Json()}};
  note.state.configuration = Json();  // rank 0 writes it
  return manifest_text(note);
}

}  // namespace

std::string part_bytes(const Manifest& own) { return shard_index_of(own, note_of(own)); }

SavePart::SavePart(MappedFile file) : file_(std::move(file)) {
  open(file_.bytes(), file_.path().string());
  let_go();
}

SavePart::SavePart(const Manifest& own) : own_(part_bytes(own)) {
  own_.shrink_to_fit();
  open(std::as_bytes(std::span(own_)), "the part of rank 0");
  state_.configuration = own.state.configuration;
}

SavePart::SavePart(std::string bytes, const std::string& what) : own_(std::move(bytes)) {
  open(std::as_bytes(std::span(own_)), what);
}

void SavePart::open(std::span<const std::byte> bytes, const std::string& what) {
  index_ = std::make_unique<ShardIndex>(bytes, what);
  state_ = parse_manifest(index_->note(), what).state;
  const Json sent = std::move(state_.lanes);
  const auto bad = [&] { fail(ErrorCode::kInvalid, "{}: its note is not a rank's", what); };
  if (!sent.is_object() || !sent.contains("first_lane") || !sent.contains("lanes")) bad();
  const Json& first = sent["first_lane"];
  if (!first.is_null() && !first.is_number_integer()) bad();
  state_.lanes = sent["lanes"];
  state_.first_lane.reset();
  if (!first.is_null()) state_.first_lane = first.get<int64_t>();
}

Manifest SavePart::manifest() const {
  Manifest manifest{.state = state_};
  for (int64_t i = 0; i < index_->num_files(); ++i) manifest.files.push_back(index_->file(i));
  for (int64_t i = 0; i < index_->num_tensors(); ++i) {
    IndexTensor from = index_->tensor(i);
    ManifestTensor tensor{from.name, from.dtype, from.shape, {}};
    for (int64_t j = 0; j < from.num_shards; ++j) {
      const IndexShard stored = index_->shard(from, j);
      const Box& box = from.boxes[stored.box];
      Shard shard{manifest.files[stored.file].name, box, stored.begin, index_->end_of(from, stored),
                  hex_of_digest(stored.xxh3_128)};
      if (stored.range.count != box.shape.num_elements()) shard.range = stored.range;
      tensor.shards.push_back(std::move(shard));
    }
    manifest.tensors.push_back(std::move(tensor));
  }
  return manifest;
}

}  // namespace skein
