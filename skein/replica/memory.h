// One rank's part of the training state in memory that outlives the process that wrote it: a file
// without a name (memfd), which the supervisor makes and its workers inherit. It is not bound by
// the size of /dev/shm, and goes with its last process.
//
//   header   a page: the label, and where the rest lies
//   data     the rank's snapshot (checkpoint/save/snapshot.h)
//   record   what the data are, with their checksums (record.h)
//
// Commit   reserve() takes the label away, complete() writes it as the last of all: a process that
//          dies in between leaves memory without a label, which nobody reads
// Errors   Error{kNoSpace} where the memory is not there; kInvalid for a label that does not fit
//          its memory
// Threads  one that writes. Others may read at any time: what they read was whole if the label is
//          still there afterwards
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "skein/base/files/file.h"

namespace skein {

// A save in memory, and whose part of it this is.
struct ReplicaLabel {
  std::string save;      // the generation that saved it, the same on all of its ranks
  int64_t number = 0;    // of the save: it decides in which of two memories it lies
  int64_t timeline = 0;  // Timeline::number of the state: a roll-back begins another one
  int64_t step = 0;
  int32_t rank = 0;
  int32_t num_ranks = 1;

  bool operator==(const ReplicaLabel&) const = default;
};

// A save goes into one of two memories, so that the one before stays until it is complete.
constexpr int kReplicaSlots = 2;
inline int replica_slot(int64_t number) { return static_cast<int>(number % kReplicaSlots); }

FileDescriptor make_replica_file(const std::string& name);

class ReplicaMemory {
 public:
  // Of a file that stays open elsewhere for as long as this object lives.
  explicit ReplicaMemory(int file) : file_(file) {}
  ~ReplicaMemory() { unmap(); }
  ReplicaMemory(const ReplicaMemory&) = delete;
  ReplicaMemory& operator=(const ReplicaMemory&) = delete;

  // Makes room for so many bytes of data and takes the label away; touches the memory when it is
  // new. Returns where the data go.
  std::span<std::byte> reserve(int64_t bytes);
  std::span<const std::byte> reserved() const;  // the same, until complete()
  void complete(const ReplicaLabel& label, std::string_view record);
  void forget();   // takes the label away, if there is one
  void release();  // and gives the memory back

  // Nothing: there is no complete part in it.
  std::optional<ReplicaLabel> label() const;
  // Of a memory with a label; valid until the next reserve().
  std::span<const std::byte> data();
  std::string record();

  // All of a complete part as bytes, to be passed on; valid until the next reserve().
  std::span<const std::byte> image();
  // Takes such bytes in: `fill` gets the place for them, and they count once it returns true and
  // they carry `label`. Whether they do.
  bool take(int64_t image_bytes, const ReplicaLabel& label,
            const std::function<bool(std::span<std::byte>)>& fill);

 private:
  struct Header;
  std::optional<Header> header() const;
  Header complete_header() const;
  void set_label();
  void map(int64_t bytes);
  void unmap();

  const int file_;
  std::byte* memory_ = nullptr;
  int64_t mapped_ = 0;
  int64_t reserved_ = 0;
};

}  // namespace skein
