// A copy of the state in memory that was reserved, and touched, at start-up: saving allocates
// nothing and its first time is as fast as its second.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "skein/checkpoint/checkpoint_layout.h"
#include "skein/tensor/view.h"

namespace skein {

// Copies bytes from where the state lives (a device, perhaps) to host memory. memcpy by default.
using CopyFunction = std::function<void(void* target, const void* source, size_t bytes)>;

class Snapshot {
 public:
  // Throws Error{kNoSpace} where the memory cannot be had.
  explicit Snapshot(int64_t bytes);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  std::span<std::byte> bytes() { return {data_, static_cast<size_t>(size_)}; }
  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }

 private:
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

// The work of copying `views` (one a spec, in order: the spec's slice, its rows perhaps apart; or,
// for a spec with a range, the vector that holds it) into a snapshot, in pieces that any number of
// threads take from each other until none is left.
class SnapshotCopy {
 public:
  // Throws Error{kInternal} where a view is not what its spec promised.
  void start(const CheckpointLayout& layout, std::span<const View> views, Snapshot& snapshot,
             const CopyFunction& copy);
  // Copies pieces until none is left; other threads may still be busy with their last one.
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
