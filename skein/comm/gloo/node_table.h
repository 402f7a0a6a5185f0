// What the ranks of one node found in the rendezvous folder, so that one of them reads it for all:
// a file in the node's memory (/dev/shm), which has no name any more once all ranks have met, or
// one failed to.
//
//   members   a byte a rank: whether it is of this node
//   looks     when one of them looked at a file of the folder last
//   records   the table; by reader and peer, where the reader reaches the peer
//
// It only ever saves work: a rank that finds nothing here looks in the folder, and where there is
// no such memory each rank does. Nothing is locked: a record that is being written has a wrong
// checksum, and that two look at once costs a look.
//
// Cost     8 ranks of 4,096: at most 6 MB of memory, and only for records that are used
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "skein/base/file.h"

namespace skein {

// A few bytes of which a reader knows whether they are whole.
class Record {
 public:
  static constexpr size_t kMaxBytes = 176;

  Record() = default;
  explicit Record(std::span<const char> bytes);  // Error{kInternal} where they do not fit
  // Nothing where nothing was written, or not all.
  std::optional<std::vector<char>> bytes() const;

  // Over files; nothing where it is not there, and false where it cannot be written.
  static std::optional<std::vector<char>> read(int fd, int64_t offset);
  bool write(int fd, int64_t offset) const;

 private:
  uint64_t expected() const;

  uint64_t num_bytes_ = 0;
  char bytes_[kMaxBytes] = {};
  uint64_t checksum_ = 0;
};

class NodeTable {
 public:
  // Of the ranks of `host` (one running kernel) that meet in `rendezvous`; `rank` is one from here
  // on.
  NodeTable(const std::string& rendezvous, const std::string& host, int rank, int size);
  ~NodeTable();
  // All ranks have met, so all of this node have opened it.
  void all_met();

  // This rank and the others of its node, ascending; all of them once all ranks have met.
  const std::vector<int>& members() const { return members_; }

  // Where `reader`, a member, reaches `peer`.
  std::optional<std::vector<char>> find(int reader, int peer) const;
  void put(int reader, int peer, std::span<const char> address);
  std::optional<std::vector<char>> find_table() const;
  void put_table(std::string_view table);

  // Whether to look at the file of this rank's addresses, or with `size` at the table: not where
  // another member did a moment ago. Says that it will.
  bool may_look(int file);

 private:
  int64_t record_at(int reader, int peer) const;

  const int rank_, size_;
  fs::path path_;  // empty once it has no name
  FileDescriptor file_;
  std::vector<int> members_;
};

}  // namespace skein
