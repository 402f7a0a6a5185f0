#include "skein/checkpoint/save/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "skein/base/error.h"
#include "skein/base/text/units.h"

namespace skein {
namespace {

constexpr int64_t kAlignmentBytes = 64;
constexpr int64_t kPageBytes = 4096;

void check_spec(const TensorSpec& spec) {
  if (!spec.slice.inside(spec.shape) || !checked_bytes(spec.shape, size_of(spec.dtype))) {
    fail(ErrorCode::kInvalid, "[checkpoint] tensor \"{}\": slice {} is not a box inside {}",
         spec.name, spec.slice.to_string(), spec.shape.to_string());
  }
  if (spec.local_begin < 0) {
    fail(ErrorCode::kInvalid, "[checkpoint] tensor \"{}\": begins at element {} of its memory",
         spec.name, spec.local_begin);
  }
  spec.stored_boxes();  // throws if the range leaves the slice
  if (spec.group.empty() ||
      spec.group.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != spec.group.npos) {
    fail(ErrorCode::kInvalid,
         "[checkpoint] tensor \"{}\": group \"{}\" is not made of a-z, 0-9 and _", spec.name,
         spec.group);
  }
}

CheckpointFile finish_file(std::vector<size_t> indices, const std::vector<TensorSpec>& specs,
                           const std::string& group, int rank, int index) {
  std::vector<SafetensorsTensor> tensors;
  for (const size_t i : indices) {
    const std::vector<Box> boxes = specs[i].stored_boxes();
    tensors.push_back({specs[i].name, specs[i].dtype,
                       boxes.size() == 1 ? boxes[0].shape : Shape{specs[i].stored_range().count}});
  }
  return {fmt::format("{}-{:05d}-{:05d}.safetensors", group, rank, index), std::move(indices),
          plan_safetensors(tensors, {{"format", "pt"}})};
}

}  // namespace

CheckpointLayout plan_checkpoint(std::vector<TensorSpec> specs, int64_t max_file_bytes, int rank) {
  CheckpointLayout plan;
  std::vector<std::string> groups;  // in order of appearance
  std::set<std::string> names;
  for (const TensorSpec& spec : specs) {
    check_spec(spec);
    if (!names.insert(spec.name).second) {
      fail(ErrorCode::kInvalid, "[checkpoint] two tensors are named \"{}\"", spec.name);
    }
    if (std::find(groups.begin(), groups.end(), spec.group) == groups.end()) {
      groups.push_back(spec.group);
    }
    plan.spec_bytes.push_back(spec.stored_bytes());
    plan.snapshot_begin.push_back(plan.snapshot_bytes);
    plan.snapshot_bytes += round_up(plan.spec_bytes.back(), kAlignmentBytes);
  }
  plan.snapshot_bytes = round_up(plan.snapshot_bytes, kPageBytes);
  for (const std::string& group : groups) {
    std::vector<size_t> indices;
    int64_t bytes = 0;
    int index = 0;
    for (size_t i = 0; i < specs.size(); ++i) {
      if (specs[i].group != group || plan.spec_bytes[i] == 0) continue;
      if (!indices.empty() && bytes + plan.spec_bytes[i] > max_file_bytes) {
        plan.files.push_back(finish_file(std::move(indices), specs, group, rank, index++));
        indices = {};
        bytes = 0;
      }
      indices.push_back(i);
      bytes += plan.spec_bytes[i];
    }
    if (!indices.empty()) {
      plan.files.push_back(finish_file(std::move(indices), specs, group, rank, index));
    }
  }
  plan.specs = std::move(specs);
  return plan;
}

}  // namespace skein
