// Memory of one rank that its peers on the host map, in which they leave short entries for it: a
// memfd of one page for the bell, and one lane for each peer, of which only those in use are
// touched.
//
//   header   magic, lanes, a bell that wakes the owner, whether the owner has ended the world
//   lane     a circular buffer of entries from one writer, the peer, to one reader, the owner
//
// What lies there was written by a peer: every index is taken modulo the buffer, so damage
// gives wrong entries and never a wrong address. The file is sealed, so that no mapping can fault.
// Threads  put: one of the writer at a time; take: one of the owner; the others: any
// Source   futex(2), memfd_create(2); Drepper 2011, Futexes Are Tricky
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "skein/base/files/file.h"

namespace skein {

struct MailboxEntry {
  enum Kind : uint64_t {
    kMessage = 1,  // may be read at `address` of the writer
    kTaken = 2,    // message `number` that the owner sent on `channel` was read
  };
  uint64_t kind = 0, channel = 0, number = 0, bytes = 0, tag = 0, address = 0;
};

class Mailbox {
 public:
  static constexpr uint64_t kLaneEntries = 64;

  // A new one. std::runtime_error: the system has no memory for it, or no memfd.
  explicit Mailbox(int num_lanes);
  // That of another process. std::runtime_error: the file is no mailbox with so many lanes.
  Mailbox(FileDescriptor file, int num_lanes);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  int fd() const { return file_.get(); }

  // By the writer. Returns false if the lane is full; the owner wakes the writer when it has room.
  bool put(int lane, const MailboxEntry& entry);
  // By the owner; nothing if the lane is empty.
  std::optional<MailboxEntry> take(int lane);
  // By the owner, after take(): whether the writer waits for room, and has to be woken. True once
  // for each wait.
  bool writer_waits(int lane);

  // Wakes the owner. The owner reads bell() before it looks for entries, and gives that number to
  // sleep(), which returns at once if the bell rang in between.
  void ring_bell();
  bool has_sleepers() const;
  uint32_t bell() const;
  // False if the bell did not ring within `longest`.
  bool sleep(uint32_t bell, std::chrono::nanoseconds longest);

  // By the owner: its memory no longer holds the messages that its entries name.
  void close();
  bool is_closed() const;

 private:
  struct Header;
  struct Lane;

  void map();
  Lane& lane(int index) const;

  FileDescriptor file_;
  size_t bytes_ = 0;
  Header* header_ = nullptr;
};

}  // namespace skein
