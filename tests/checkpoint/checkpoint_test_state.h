// A small training state for the tests: its values follow from the step, so that what is read back
// tells which step it is from.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "skein/checkpoint/find/newest_good.h"
#include "skein/checkpoint/save/checkpoint_writer.h"
#include "tests/temp_folder.h"

namespace skein::test {

class SmallState {
 public:
  // `scale` multiplies the number of rows.
  explicit SmallState(int64_t scale = 1) {
    specs_ = {TensorSpec::whole("embed.weight", DType::kF32, {6 * scale, 5}),
              TensorSpec::whole("norm.weight", DType::kBF16, {7}),
              TensorSpec::whole("moment.embed.weight", DType::kF32, {6 * scale, 5}, "optimizer"),
              TensorSpec::whole("counter", DType::kI32, {}, "optimizer")};
    for (const TensorSpec& spec : specs_) {
      bytes_.emplace_back(spec.slice.shape.num_elements() * size_of(spec.dtype));
    }
    for (size_t i = 0; i < specs_.size(); ++i) {
      views_.push_back(View::contiguous(bytes_[i].data(), specs_[i].dtype, specs_[i].slice.shape));
    }
  }

  static std::byte value(int64_t step, size_t tensor, size_t byte) {
    return static_cast<std::byte>((step * 31 + tensor * 7 + byte % 251) % 127);  // all finite
  }
  void set_step(int64_t step) {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      for (size_t j = 0; j < bytes_[i].size(); ++j) bytes_[i][j] = value(step, i, j);
    }
    state_.step = state_.schedule_step = step;
    state_.seed = 0xfedcba9876543210u;
    state_.tokens_seen = step * 4096;
    state_.lanes = Json{{"lane", {step, 2, 3}}};
    state_.configuration = Json{{"learning_rate", 3e-4}};
    state_.skein_version = "0.1.0";
  }

  // Saves and waits; the outcome.
  Result<SavedCheckpoint> save(CheckpointWriter& writer, int64_t step) {
    set_step(step);
    writer.begin(state_, views_);
    writer.wait();
    return *writer.poll();
  }

  // Everything in the checkpoint is this step's.
  void expect_saved(const fs::path& path, int64_t step) {
    const CheckpointReader reader(path);
    set_step(step);
    EXPECT_EQ(reader.state(), state_);
    for (size_t i = 0; i < specs_.size(); ++i) {
      std::vector<std::byte> found(bytes_[i].size());
      reader.read(specs_[i].name, Box::whole(specs_[i].shape), specs_[i].dtype, found);
      EXPECT_EQ(found, bytes_[i]) << specs_[i].name;
    }
  }

  // Of what is saved from here on.
  void set_timeline(Timeline timeline) { state_.timeline = std::move(timeline); }

  const std::vector<TensorSpec>& specs() const { return specs_; }
  const std::vector<View>& views() const { return views_; }
  const TrainingState& state() const { return state_; }

 private:
  std::vector<TensorSpec> specs_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<View> views_;
  TrainingState state_;
};

inline std::vector<int64_t> steps_in(const fs::path& dir) {
  std::vector<int64_t> steps;
  for (const CheckpointInfo& checkpoint : list_checkpoints(dir)) steps.push_back(checkpoint.step);
  return steps;
}

inline std::vector<std::string> names_in(const fs::path& dir) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace skein::test
