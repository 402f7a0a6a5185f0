// The memory of another process of this host: its mailbox, and what its messages are read from.
//
// Bytes go by process_vm_readv from where they lie to where they belong: one copy, on the thread
// that receives, and the memory stays what it is (no shared pages, huge pages work).
// Cost     a system call for each message, then about half the speed of a copy within a process
// Source   process_vm_readv(2), pidfd_open(2), ptrace(2) "Ptrace access mode checking"
#pragma once

#include <cstdint>
#include <string>

#include "skein/base/files/file.h"
#include "skein/comm/shared_memory/mailbox.h"

namespace skein {

// What a rank tells those that shall read its memory.
struct MemoryOffer {
  int32_t process = 0;
  int32_t mailbox = -1;  // the descriptor in that process
  // A random number and where it lies: whoever reads it there reads the right process.
  uint64_t token = 0;
  uint64_t token_address = 0;
};

class PeerMemory {
 public:
  // Reads the token to try it. std::runtime_error: why this process may not, or cannot.
  PeerMemory(const MemoryOffer& offer, int num_lanes);

  Mailbox& mailbox() { return mailbox_; }
  // Copies; an empty text, or why not all could be read.
  std::string read(void* to, uint64_t address, int64_t bytes) const;
  bool has_ended() const;  // the process

 private:
  int32_t process_;
  FileDescriptor watch_;
  Mailbox mailbox_;
};

}  // namespace skein
