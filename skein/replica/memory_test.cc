#include "skein/replica/memory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "skein/base/error.h"

namespace skein {
namespace {

const ReplicaLabel kLabel{.save = "start-g1", .number = 7, .step = 41, .rank = 1, .num_ranks = 4};

void save(ReplicaMemory& memory, int64_t bytes, const ReplicaLabel& label = kLabel) {
  std::ranges::fill(memory.reserve(bytes), std::byte{5});
  memory.complete(label, "record");
}

int64_t taken_bytes(int file) {
  struct stat status {};
  EXPECT_EQ(::fstat(file, &status), 0);
  return int64_t{status.st_blocks} * 512;
}

TEST(ReplicaMemory, HasALabelOnlyWhileItIsComplete) {
  const FileDescriptor file = make_replica_file("test");
  ReplicaMemory memory(file.get()), reader(file.get());
  EXPECT_FALSE(reader.label());
  save(memory, 8192);
  EXPECT_EQ(reader.label(), kLabel);
  EXPECT_EQ(reader.data().size(), 8192u);
  EXPECT_EQ(reader.record(), "record");
  memory.reserve(8192);
  EXPECT_FALSE(reader.label());
  EXPECT_THROW(reader.data(), Error);
}

// A reader that maps what lies behind the new end lives on.
TEST(ReplicaMemory, GivesBackMemoryUnderAReader) {
  const FileDescriptor file = make_replica_file("test");
  ReplicaMemory memory(file.get()), reader(file.get());
  save(memory, 1 << 20);
  const auto old = reader.data();
  save(memory, 4096);
  EXPECT_LT(taken_bytes(file.get()), 64 << 10);
  EXPECT_EQ(old.back(), std::byte{0});
  save(memory, 1 << 20);
  EXPECT_GE(taken_bytes(file.get()), 1 << 20);
  EXPECT_EQ(reader.data().back(), std::byte{5});
}

TEST(ReplicaMemory, TakesOnlyWhatItWasToldOf) {
  const FileDescriptor from = make_replica_file("from"), to = make_replica_file("to");
  ReplicaMemory memory(from.get()), other(to.get());
  save(memory, 8192);
  const auto image = memory.image();
  const auto copy = [&](std::span<std::byte> place) {
    std::ranges::copy(image.first(place.size()), place.begin());
    return true;
  };
  ReplicaLabel wrong = kLabel;
  wrong.step = 42;
  EXPECT_FALSE(other.take(std::ssize(image), wrong, copy));
  EXPECT_FALSE(other.label());
  EXPECT_FALSE(other.take(std::ssize(image) - 1, kLabel, copy));  // its header says more
  EXPECT_FALSE(other.take(100, kLabel, copy));
  EXPECT_FALSE(other.take(INT64_MAX, kLabel, copy));
  EXPECT_TRUE(other.take(std::ssize(image), kLabel, copy));
  EXPECT_EQ(other.label(), kLabel);
  EXPECT_TRUE(std::ranges::equal(other.data(), memory.data()));
}

}  // namespace
}  // namespace skein
