// The plan that tests/survival/file_faults.cc goes by, and the record of a call; as
// tests/survival/file_faults.py packs and unpacks them.
#pragma once

#include <cstdint>

namespace skein::test {

enum Kind : int32_t {
  kCreate,
  kWrite,
  kTruncate,
  kSync,
  kMakeFolder,
  kRename,
  kExchange,
  kLink,
  kUnlink,
  kRemoveFolder,
};

// kStale: the call fails, and each later one on its descriptor.
enum Action : int32_t { kKill, kError, kShortWrite, kStale };

// A call at which something happens.
struct Point {
  int32_t rank;
  int32_t elsewhere;   // 0: of a save, 1: on another file
  int32_t index;       // of the call
  int32_t after;       // 0: before it, 1: after it (kKill)
  int32_t action;      // Action
  int32_t error;       // errno (kError, kStale)
  int64_t first_step;  // the save in which it was looked for first; 0: none yet
  int64_t fired;       // the step of the save that it struck; 1 elsewhere; -1: no such call
  int32_t kind;        // of the call that it struck
  char path[100];      // within the folder
};

struct Plan {
  char folder[512];  // with '/' at its end: of what files the calls are counted
  char log[512];     // calls are written down here; empty: nowhere
  int64_t gap;       // saves of so many steps later are the next that are struck
  int64_t armed_step;
  int64_t most_in_save[16];    // calls, by rank + 1
  int64_t most_elsewhere[16];  // the same
  int64_t num_points, next;    // points strike one after the other
  Point points[2048];
};

// In the log, followed by the names and the bytes that were written.
struct Record {
  int32_t kind, rank;
  uint64_t inode, other;       // of the file; of what a rename replaces
  uint64_t folder, to_folder;  // of the names
  int64_t offset, bytes;
  uint32_t name_bytes, to_bytes;
};

}  // namespace skein::test
