#include "skein/checkpoint/save/merge_parts.h"

#include <algorithm>
#include <unordered_map>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"

namespace skein {
namespace {

void check_same_state(const TrainingState& own, const TrainingState& other, size_t rank) {
  const auto check = [rank](std::string_view what, auto expected, auto found) {
    if (expected == found) return;
    fail(ErrorCode::kInvalid, "rank {} saved {} {}, rank 0 {}: they are not of one run", rank, what,
         found, expected);
  };
  check("step", own.step, other.step);
  check("schedule_step", own.schedule_step, other.schedule_step);
  check("seed", own.seed, other.seed);
  check("reduction_width", own.reduction_width, other.reduction_width);
  check("run_id", own.timeline.run_id, other.timeline.run_id);
}

// A rank's array of lanes, to be joined with the others'.
Json& lane_array(Json& lanes, size_t rank) {
  const auto found = lanes.is_object() ? lanes.find("lanes") : lanes.end();
  if (found == lanes.end() || !found->is_array()) {
    fail(ErrorCode::kInvalid, "rank {} saved lanes without an array \"lanes\"", rank);
  }
  return *found;
}

Json merge_lanes(std::vector<TrainingState>& parts) {
  std::vector<size_t> ranks;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    if (parts[rank].first_lane) ranks.push_back(rank);
  }
  if (ranks.empty()) fail(ErrorCode::kInvalid, "no rank saved the lanes");
  const auto first_lane = [&](size_t rank) { return *parts[rank].first_lane; };
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](size_t a, size_t b) { return first_lane(a) < first_lane(b); });
  Json merged = std::move(parts[ranks[0]].lanes);
  if (ranks.size() == 1 && first_lane(ranks[0]) == 0) return merged;
  Json all = Json::array();
  std::swap(all, lane_array(merged, ranks[0]));
  for (const size_t rank : ranks) {
    if (rank != ranks[0]) {
      Json& lanes = parts[rank].lanes;
      Json own = Json::array();
      std::swap(own, lane_array(lanes, rank));
      if (lanes != merged) {
        fail(ErrorCode::kInvalid, "rank {} saved lanes of {}, rank {} of {}", rank,
             json_text(lanes), ranks[0], json_text(merged));
      }
      if (first_lane(rank) != static_cast<int64_t>(all.size())) {
        fail(ErrorCode::kInvalid, "rank {} saved lanes from {} on, expected {}", rank,
             first_lane(rank), all.size());
      }
      for (Json& lane : own) all.push_back(std::move(lane));
    } else if (first_lane(rank) != 0) {
      fail(ErrorCode::kInvalid, "rank {} saved lanes from {} on, expected 0", rank,
           first_lane(rank));
    }
  }
  merged["lanes"] = std::move(all);
  return merged;
}

}  // namespace

TrainingState merge_states(std::vector<TrainingState> states) {
  for (size_t rank = 0; rank < states.size(); ++rank) {
    check_same_state(states.at(0), states[rank], rank);
  }
  Json lanes = merge_lanes(states);
  TrainingState merged = std::move(states[0]);
  merged.lanes = std::move(lanes);
  merged.first_lane = 0;
  return merged;
}

void check_same_tensor(size_t rank, const ManifestTensor& tensor, DType dtype, const Shape& shape) {
  if (dtype == tensor.dtype && shape == tensor.shape) return;
  fail(ErrorCode::kInvalid, "rank {} saved tensor \"{}\" as {} {}, another rank as {} {}", rank,
       tensor.name, dtype_name(tensor.dtype), tensor.shape.to_string(), dtype_name(dtype),
       shape.to_string());
}

Manifest merge_parts(std::vector<Manifest> parts) {
  std::vector<TrainingState> states;
  for (Manifest& part : parts) states.push_back(std::move(part.state));
  Manifest merged{.state = merge_states(std::move(states))};
  std::unordered_map<std::string, size_t> index;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    Manifest& part = parts[rank];
    std::move(part.files.begin(), part.files.end(), std::back_inserter(merged.files));
    for (ManifestTensor& tensor : part.tensors) {
      const auto [known, is_new] = index.emplace(tensor.name, merged.tensors.size());
      if (is_new) {
        merged.tensors.push_back(std::move(tensor));
        continue;
      }
      ManifestTensor& whole = merged.tensors[known->second];
      check_same_tensor(rank, tensor, whole.dtype, whole.shape);
      std::move(tensor.shards.begin(), tensor.shards.end(), std::back_inserter(whole.shards));
    }
  }
  return parse_manifest(manifest_text(merged), "the merged manifest.json");
}

}  // namespace skein
