#include "skein/train/loop/state_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "skein/base/machine/clock.h"
#include "skein/base/machine/machine.h"
#include "skein/base/shared/heartbeat.h"

namespace skein {
namespace {

constexpr size_t kPieceBytes = 256 << 10;

// The axes of the mesh on which ranks can hold copies. Stages of a pipeline hold different tensors.
unsigned axes_with_copies(const Mesh& mesh) {
  unsigned axes = 0;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (mesh.axis(axis).size > 1 && mesh.axis(axis).name != "pp") axes |= 1U << axis;
  }
  return axes;
}

unsigned all_axes(const Mesh& mesh) { return (1U << mesh.num_axes()) - 1; }

unsigned replicated_over(const TensorType& type, const Mesh& mesh) {
  unsigned axes = 0;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (type.placements.at(static_cast<size_t>(axis)).is_replicated()) axes |= 1U << axis;
  }
  return axes & axes_with_copies(mesh);
}

std::string ranks_text(std::span<const int> ranks) {
  constexpr size_t kMost = 8;
  const size_t shown = std::min(kMost, ranks.size());
  return fmt::format("{} {}{}", ranks.size() == 1 ? "rank" : "ranks",
                     fmt::join(ranks.first(shown), ", "),
                     shown < ranks.size() ? fmt::format(" and {} more", ranks.size() - shown) : "");
}

}  // namespace

std::vector<CheckedTensor> checked_tensors(const Executor& executor, const ProgramSet& programs,
                                           const std::vector<StateTensor>& tensors) {
  std::vector<CheckedTensor> checked;
  for (const StateTensor& tensor : tensors) {
    const TensorType& type = programs.type(tensor.name);
    const auto* data = static_cast<const std::byte*>(executor.view(tensor.name).data);
    const auto bytes = static_cast<size_t>(tensor.range.count * size_of(type.dtype));
    checked.push_back({tensor.name, replicated_over(type, programs.mesh), {data, bytes}});
  }
  return checked;
}

StateCheck::StateCheck(Communicator& world, const Mesh& mesh, std::vector<CheckedTensor> tensors)
    : world_(world), mesh_(mesh), tensors_(std::move(tensors)) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const std::span<const std::byte> bytes = tensors_[i].bytes;
    for (size_t begin = 0; begin < bytes.size(); begin += kPieceBytes) {
      const size_t size = std::min(kPieceBytes, bytes.size() - begin);
      pieces_.push_back({i, begin, bytes.subspan(begin, size)});
    }
  }
  // Every rank votes over the same sets, whatever its own tensors are.
  const unsigned most = axes_with_copies(mesh_);
  for (unsigned axes = 1; axes <= most; ++axes) {
    if ((axes & ~most) == 0) votes_.push_back(axes);
  }
  votes_.push_back(all_axes(mesh_));  // of what all ranks are told
  found_.resize(pieces_.size());
}

void StateCheck::hash(std::vector<Hash128>& hashes) {
  heartbeat::tick();
  hashes.resize(pieces_.size());
#pragma omp parallel for schedule(dynamic, 4)
  for (size_t i = 0; i < pieces_.size(); ++i) hashes[i] = xxh3_128(pieces_[i].bytes);
}

Hash128 StateCheck::hash_of_copies(unsigned axes) const {
  std::vector<Hash128> hashes;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (tensors_[pieces_[i].tensor].copied_over == axes) hashes.push_back(left_[i]);
  }
  return xxh3_128(std::as_bytes(std::span(hashes)));
}

void StateCheck::vote(std::span<const double> told) {
  const auto start = Clock::now();
  hash(left_);
  std::vector<Hash128> mine;
  for (const unsigned axes : std::span(votes_).first(votes_.size() - 1)) {
    mine.push_back(hash_of_copies(axes));
  }
  mine.push_back(xxh3_128(std::as_bytes(told)));
  std::vector<Hash128> all(mine.size() * static_cast<size_t>(world_.size()));
  const auto words = static_cast<int64_t>(mine.size() * sizeof(Hash128) / 4);
  Collective collective{.kind = CollectiveKind::kAllGather, .dtype = DType::kI32};
  collective.parts.push_back({.input = mine.data(),
                              .output = all.data(),
                              .elements = words * world_.size(),
                              .share = words});
  collective.label = "whether copies of the state are equal";
  world_.run(collective);
  judge(all);
  seconds_ += seconds_since(start);
}

// All ranks come to the same verdict, for they judge the same numbers.
void StateCheck::judge(std::span<const Hash128> all) const {
  std::set<int> wrong;
  std::vector<Hash128> hashes(static_cast<size_t>(world_.size()));
  for (size_t i = 0; i < votes_.size(); ++i) {
    for (size_t rank = 0; rank < hashes.size(); ++rank)
      hashes[rank] = all[rank * votes_.size() + i];
    const std::vector<int> found = suspects(mesh_, votes_[i], hashes);
    wrong.insert(found.begin(), found.end());
  }
  if (wrong.empty()) return;
  const std::vector<int> ranks(wrong.begin(), wrong.end());
  if (!wrong.contains(world_.rank())) {
    fail(ErrorCode::kPeerLost, "{} differed from the copies of other ranks after an update",
         ranks_text(ranks));
  }
  fail(ErrorCode::kWrongBits,
       "what {} held after an update differed from the copies of other ranks, expected the same "
       "bits: the memory or the arithmetic of {} was wrong{}",
       ranks_text(ranks), node_name(),
       ranks.size() > 1 ? ", or that of another of these ranks" : "");
}

void StateCheck::expect_unchanged() {
  const auto start = Clock::now();
  hash(found_);
  const auto changed = std::mismatch(left_.begin(), left_.end(), found_.begin()).first;
  if (changed != left_.end()) {
    const HashedPiece& piece = pieces_[static_cast<size_t>(changed - left_.begin())];
    fail(ErrorCode::kWrongBits,
         "bytes {} to {} of {} changed after an update, expected what it had left, for nothing "
         "writes there in between: the memory of {} was wrong",
         piece.begin_bytes, piece.begin_bytes + piece.bytes.size() - 1, tensors_[piece.tensor].name,
         node_name());
  }
  seconds_ += seconds_since(start);
}

std::vector<int> suspects(const Mesh& mesh, unsigned axes, std::span<const Hash128> hashes) {
  std::map<std::vector<int64_t>, std::vector<int>> groups;  // by coordinates on the other axes
  for (int rank = 0; rank < std::ssize(hashes); ++rank) {
    std::vector<int64_t> coordinates = mesh.coordinates(rank);
    for (size_t axis = 0; axis < coordinates.size(); ++axis) {
      if ((axes >> axis & 1U) != 0) coordinates[axis] = 0;
    }
    groups[coordinates].push_back(rank);
  }
  std::vector<int> wrong;
  for (const auto& [coordinates, ranks] : groups) {
    std::map<Hash128, size_t> votes;
    for (const int rank : ranks) ++votes[hashes[static_cast<size_t>(rank)]];
    for (const int rank : ranks) {
      if (2 * votes[hashes[static_cast<size_t>(rank)]] <= ranks.size()) wrong.push_back(rank);
    }
  }
  return wrong;
}

}  // namespace skein
