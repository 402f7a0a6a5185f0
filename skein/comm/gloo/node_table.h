// What the ranks of one node found in the rendezvous folder, so that one of them reads it for all:
// a file of this user alone in the node's memory (base/shared/own_file.h), which is unlinked once
// all ranks have met or one failed.
//
//   members   one byte per rank: whether it is on this node
//   looks     when a member last looked at a file of the folder
//   records   the rendezvous table; the address of each peer, by reader and peer
//
// The table only saves work: a rank that finds nothing here looks in the folder itself, and without
// such memory every rank does. Nothing is locked: a record that is being written has a wrong
// checksum, and two members that look at once only waste one look.
//
// Cost     8 ranks of 4,096: at most 6 MB of memory, and only for records that are used
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "skein/base/shared/own_file.h"

namespace skein {

// A few bytes with a checksum, so that a reader sees whether they are complete.
class TableRecord {
 public:
  static constexpr size_t kMaxBytes = 176;

  TableRecord() = default;
  explicit TableRecord(std::span<const char> bytes);  // Error{kInternal} where they do not fit
  // Nothing if nothing was written, or not all of it.
  std::optional<std::vector<char>> bytes() const;

  // The record in a file. read() gives nothing if it is not there, write() false if it failed.
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
  // The table of the ranks on `host` (one running kernel) that meet in `rendezvous`; adds `rank`.
  NodeTable(const std::string& rendezvous, const std::string& host, int rank, int size);
  ~NodeTable();
  // To be called when all ranks have met, and so all of this node have opened the table.
  void all_met();

  // The ranks of this node that are known, ascending; all of them once all ranks have met.
  const std::vector<int>& members() const { return members_; }

  // The address at which the member `reader` reaches `peer`.
  std::optional<std::vector<char>> find(int reader, int peer) const;
  void put(int reader, int peer, std::span<const char> address);
  std::optional<std::vector<char>> find_table() const;
  void put_table(std::string_view table);

  // Whether this rank should look at the file of its addresses, or with `size` at the table: not if
  // another member did a moment ago. If so, notes the time for the others.
  bool may_look(int file);

 private:
  void forget_name();
  int64_t record_at(int reader, int peer) const;

  const int rank_, size_;
  std::optional<OwnFolder> folder_;
  std::string name_;  // empty once the file is unlinked
  FileDescriptor file_;
  std::vector<int> members_;
};

}  // namespace skein
