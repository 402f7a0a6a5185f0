// A small training state that the ranks of a mesh hold together, for the tests: every element's
// value follows from the step, the tensor and its place in the tensor.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "skein/checkpoint/save/stored_part.h"
#include "tests/checkpoint/checkpoint_test_state.h"

namespace skein::test {

class RanksState {
 public:
  struct Tensor {
    std::string name;
    TensorType type;
    std::string group;
  };

  // A matrix and a norm that all hold, a matrix split over tp, and ZeRO state of each.
  // `indexed`: its ranks write index.bin.
  explicit RanksState(Mesh mesh, bool indexed = false) : mesh_(std::move(mesh)), indexed_(indexed) {
    const Placement flat = Placement::flat(), rows = Placement::sharded(0),
                    cols = Placement::sharded(1);
    add("embed.weight", DType::kF32, {60, 96}, {});
    add("norm.weight", DType::kBF16, {7}, {});
    add("up.weight", DType::kBF16, {24, 104}, {{"tp", rows}});
    add("down.weight", DType::kF32, {56, 72}, {{"tp", cols}});
    add("exp_avg.embed.weight", DType::kF32, {60, 96}, {{"dp", flat}}, "optimizer");
    add("exp_avg.norm.weight", DType::kF32, {7}, {{"dp", flat}}, "optimizer");
    add("exp_avg.down.weight", DType::kF32, {56, 72}, {{"tp", cols}, {"dp", flat}}, "optimizer");
  }

  const Mesh& mesh() const { return mesh_; }
  bool indexed() const { return indexed_; }
  int num_ranks() const { return static_cast<int>(mesh_.num_ranks()); }
  const std::vector<Tensor>& tensors() const { return tensors_; }

  std::vector<TensorSpec> specs(int64_t rank) const {
    std::vector<TensorSpec> specs;
    for (const Tensor& tensor : tensors_) {
      specs.push_back(TensorSpec::part(tensor.name, tensor.type,
                                       stored_part(tensor.type, mesh_, rank), tensor.group));
    }
    return specs;
  }

  // What `rank` holds of a tensor at `step`, with whatever in the padding.
  std::vector<std::byte> local(int64_t step, size_t tensor, int64_t rank) const {
    const TensorType& type = tensors_[tensor].type;
    const Box box = type.local_box(mesh_, rank);
    const FlatRange held = type.local_range(mesh_, rank);
    const int64_t element_bytes = size_of(type.dtype);
    std::vector<std::byte> bytes(type.local_bytes(mesh_), std::byte{0xee});
    for (int64_t i = 0; i < held.count; ++i) {
      int64_t rest = held.begin + i, index = 0, stride = 1;
      for (int dim = type.shape.rank() - 1; dim >= 0; --dim) {
        index += (box.offset[dim] + rest % box.shape.dim(dim)) * stride;
        rest /= box.shape.dim(dim);
        stride *= type.shape.dim(dim);
      }
      const uint32_t value = (step * 1000003 + tensor * 10007 + index * 7 + 1) % 0x7f00;  // finite
      std::memcpy(bytes.data() + i * element_bytes, &value, element_bytes);
    }
    return bytes;
  }

  // Of two lanes for each dp coordinate, those of this rank; nothing if another brings them.
  TrainingState state(int64_t step, int64_t rank) const {
    TrainingState state;
    state.step = state.schedule_step = step;
    const int64_t num_dp = mesh_.size("dp"), per_dp = num_ranks() / num_dp;
    const int64_t dp = rank / per_dp;  // dp is outermost here
    state.first_lane = rank % per_dp == 0 ? std::optional(2 * dp) : std::nullopt;
    state.lanes = lanes(step, 2 * dp, 2 * dp + 2);
    return state;
  }
  TrainingState whole_state(int64_t step) const {
    TrainingState state = this->state(step, 0);
    state.lanes = lanes(step, 0, 2 * mesh_.size("dp"));
    return state;
  }

  // Every rank's memory is what it would be had it never been saved; any mesh may ask.
  void expect_loads(const fs::path& path, int64_t step) const {
    const CheckpointReader reader(path);
    for (int64_t rank = 0; rank < num_ranks(); ++rank) {
      for (size_t i = 0; i < tensors_.size(); ++i) {
        const TensorType& type = tensors_[i].type;
        const FlatRange held = type.local_range(mesh_, rank);
        std::vector<std::byte> found(type.local_bytes(mesh_), std::byte{0xee});
        reader.read_range(tensors_[i].name, type.local_box(mesh_, rank), held, type.dtype,
                          std::span(found).first(held.count * size_of(type.dtype)));
        EXPECT_EQ(found == local(step, i, rank), true) << tensors_[i].name << " of rank " << rank;
      }
    }
  }
  void expect_saved(const fs::path& path, int64_t step) const {
    const Result<VerifyReport> verified = verify_checkpoint(path, 1);
    ASSERT_TRUE(verified.ok()) << verified.error().what();
    EXPECT_EQ(CheckpointReader(path).state(), whole_state(step));
    expect_loads(path, step);
  }

 private:
  void add(std::string name, DType dtype, Shape shape,
           std::vector<std::pair<std::string, Placement>> placed, std::string group = "weights") {
    TensorType type = TensorType::replicated(dtype, std::move(shape), mesh_);
    for (const auto& [axis, placement] : placed) type.placements[mesh_.find(axis)] = placement;
    tensors_.push_back({std::move(name), std::move(type), std::move(group)});
  }
  static Json lanes(int64_t step, int64_t begin, int64_t end) {
    Json all = Json::array();
    for (int64_t lane = begin; lane < end; ++lane) all.push_back({step, lane, 0});
    return {{"seed", 1}, {"lanes", all}};
  }

  Mesh mesh_;
  bool indexed_ = false;
  std::vector<Tensor> tensors_;
};

// One rank and its writer.
class Rank {
 public:
  Rank(const RanksState& state, const fs::path& dir, int rank, CheckpointWriterOptions options)
      : state_(state), rank_(rank), tensors_(state.tensors().size()) {
    options.rank = rank;
    options.num_ranks = state.num_ranks();
    if (state.indexed()) options.index_from_ranks = 2;
    if (options.save_id.empty()) options.save_id = "test";
    writer_ = std::make_unique<CheckpointWriter>(dir, options, state.specs(rank));
  }
  void begin(int64_t step) {
    std::vector<View> views;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const TensorType& type = state_.tensors()[i].type;
      tensors_[i] = state_.local(step, i, rank_);
      views.push_back(
          View::contiguous(tensors_[i].data(), type.dtype, type.local_shape(state_.mesh())));
    }
    writer_->begin(state_.state(step, rank_), views);
  }
  Result<SavedCheckpoint> finish() {
    writer_->wait();
    return *writer_->poll();
  }
  CheckpointWriter& writer() { return *writer_; }

 private:
  const RanksState& state_;
  int rank_;
  std::vector<std::vector<std::byte>> tensors_;
  std::unique_ptr<CheckpointWriter> writer_;
};

// All ranks of a mesh in one process.
class Ranks {
 public:
  using Options = std::function<void(int rank, CheckpointWriterOptions& options)>;
  Ranks(const RanksState& state, const fs::path& dir, const Options& set = {}) {
    for (int rank = 0; rank < state.num_ranks(); ++rank) {
      CheckpointWriterOptions options;
      if (set) set(rank, options);
      ranks_.push_back(std::make_unique<Rank>(state, dir, rank, options));
    }
  }
  // Outcome by rank.
  std::vector<Result<SavedCheckpoint>> save(int64_t step) {
    for (auto& rank : ranks_) rank->begin(step);
    std::vector<Result<SavedCheckpoint>> results;
    for (auto& rank : ranks_) results.push_back(rank->finish());
    return results;
  }
  // All saved it.
  void expect_save(int64_t step) {
    for (const auto& result : save(step)) EXPECT_TRUE(result.ok()) << result.error().what();
  }
  Rank& operator[](int rank) { return *ranks_.at(rank); }

 private:
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace skein::test
