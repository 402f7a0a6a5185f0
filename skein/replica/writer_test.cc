#include "skein/replica/writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <thread>

#include "skein/base/error.h"
#include "tests/checkpoint/checkpoint_ranks_state.h"

namespace skein {
namespace {

// One rank's state, and the memory of its saves.
class Saves : public testing::Test {
 protected:
  Saves() {
    for (int slot = 0; slot < kReplicaSlots; ++slot) {
      files_.emplace_back(::memfd_create("slot", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      place_.slots.push_back(files_.back().get());
    }
  }

  void begin(ReplicaWriter& writer, int64_t step) {
    std::vector<View> views;
    bytes_.clear();
    for (size_t i = 0; i < state_.tensors().size(); ++i) {
      const TensorType& type = state_.tensors()[i].type;
      bytes_.push_back(state_.local(step, i, 0));
      views.push_back(
          View::contiguous(bytes_.back().data(), type.dtype, type.local_shape(state_.mesh())));
    }
    writer.begin(state_.state(step, 0), views);
  }
  // Step of what lies in a slot; -1: nothing whole.
  int64_t step_of(int slot) {
    const auto label = ReplicaMemory(files_[static_cast<size_t>(slot)].get()).label();
    return label ? label->step : -1;
  }
  static void wait_for(ReplicaWriter& writer) {
    while (!writer.is_complete()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ReplicaWriterOptions options() const {
    return {.place = place_, .save = "g1", .first_number = 1, .rank = 0, .num_ranks = 2};
  }

  const test::RanksState state_{Mesh::standard(1, 2, 1, 1)};
  ReplicaPlace place_;
  std::vector<FileDescriptor> files_;

 private:
  std::vector<std::vector<std::byte>> bytes_;
};

TEST_F(Saves, TakeTheSlotsInTurnsSoThatOneIsAlwaysWhole) {
  ReplicaWriter writer(options(), state_.specs(0));
  EXPECT_TRUE(writer.is_complete());
  for (int64_t number = 1; number <= 5; ++number) {
    begin(writer, 10 * number);
    const int other = replica_slot(number - 1);
    EXPECT_EQ(step_of(other), number == 1 ? -1 : 10 * (number - 1)) << "while it is made";
    wait_for(writer);
    EXPECT_EQ(step_of(replica_slot(number)), 10 * number);
  }
}

TEST_F(Saves, ASaveWhoseOneBeforeIsNotKeptElsewhereIsRefused) {
  place_.passes_on = true;  // and nobody does
  ReplicaWriter writer(options(), state_.specs(0));
  begin(writer, 10);
  EXPECT_THROW(begin(writer, 20), Error);
  EXPECT_EQ(step_of(replica_slot(0)), -1) << "the slot of the second";
}

TEST_F(Saves, WithoutMemoryTheyAreAnErrorThatLeavesTheLastOneWhole) {
  ReplicaWriter writer(options(), state_.specs(0));
  begin(writer, 10);
  wait_for(writer);
  // As where there is none: the memory of the next one cannot become larger.
  const int next = place_.slots[static_cast<size_t>(replica_slot(2))];
  ASSERT_EQ(::fcntl(next, F_ADD_SEALS, F_SEAL_GROW), 0);
  try {
    begin(writer, 20);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoSpace);
  }
  EXPECT_EQ(step_of(replica_slot(1)), 10);
}

}  // namespace
}  // namespace skein
