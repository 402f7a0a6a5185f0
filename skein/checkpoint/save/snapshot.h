// A copy of the state in memory that is reserved at start-up and touched by threads of its own
// behind the first steps: a save allocates nothing, and the first one is as fast as the second.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "skein/checkpoint/save/layout.h"
#include "skein/tensor/view.h"

namespace skein {

// Copies bytes from where the state is (perhaps a device) to host memory. memcpy by default.
using CopyFunction = std::function<void(void* target, const void* source, size_t bytes)>;

class Snapshot {
 public:
  // Throws Error{kNoSpace} if the memory is not available.
  explicit Snapshot(int64_t bytes);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // To write; waits until all of it was touched. Before the first call it holds nothing to read.
  std::span<std::byte> bytes();
  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }

 private:
  void touch(int64_t begin, int64_t end);

  std::byte* data_ = nullptr;
  int64_t size_ = 0;
  std::vector<std::thread> touching_;
};

// Copies `views` into a snapshot, in segments that any number of threads take until none is left.
// There is one view per spec, in order: the spec's slice, whose rows may have gaps, or for a spec
// with a range the vector that holds it.
class SnapshotCopy {
 public:
  // Throws Error{kInternal} if a view does not match its spec.
  void start(const CheckpointLayout& layout, std::span<const View> views,
             std::span<std::byte> snapshot, const CopyFunction& copy);
  // Copies segments until none is left; other threads may still be copying their last one.
  void help();

 private:
  void copy_piece(int64_t begin, int64_t end);

  const CheckpointLayout* layout_ = nullptr;
  std::span<const View> views_;
  std::byte* target_ = nullptr;
  const CopyFunction* copy_ = nullptr;
  std::atomic<int64_t> next_byte_ = 0;
};

}  // namespace skein
