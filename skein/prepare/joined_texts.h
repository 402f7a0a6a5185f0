// The order in which the texts of pieces come into one file, one after another, while several are
// made at a time. The text of the piece whose turn it is goes straight there; the others have files
// of their own meanwhile, and are copied when their turn comes. The disk writes the one file all
// the time, so that a corpus waits for little at its end; the others are mostly gone before the
// kernel begins to write them.
//
// Format   `joined.text`: kCorpusTextBegin bytes for the header of a corpus, then the texts. Which
//          of them are there, and where, say the reports of the pieces (piece.h)
// Errors   Error{kIo | kNoSpace | kNotFound} naming the file
// Threads  any. One of its own, between open() and close(), tells the disk to write, which waits
//          where the disk is busy
#pragma once

#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/base/threads/mutex.h"
#include "skein/data/corpus/spool.h"

namespace skein {

class JoinedTexts {
 public:
  JoinedTexts(const fs::path& path, size_t num_pieces);
  ~JoinedTexts() { close(); }

  const fs::path& path() const { return path_; }

  // Makes the file, unless it is there, and cuts off what lies behind the texts that are in it.
  void open();
  void close();

  // Where the text of `piece` begins, if those of all before it are in the file: it is its turn.
  std::optional<int64_t> turn(size_t piece) const;

  // The text of the piece whose turn it was is in the file: it is the next one's.
  void put(int64_t num_bytes);

  // The text of `piece` is whole, in a file of its own.
  void leave(size_t piece, int64_t num_bytes);

  // The piece whose turn it is, if its text was left: the caller, and nobody else, has to put it.
  std::optional<size_t> take_left();

  // For the one whose turn it is. Copies a text to `begin`.
  void copy(const FileBytes& text, int64_t begin);

  // The same has written all before `end`: the disk may. Waits where the disk is far behind.
  void write_behind(int64_t end);

  // Whether to make `piece` now. Not if it would only be one more text that waits for the disk:
  // what is left has its turn soon, and if it is little, it never gets to the disk before.
  bool may_begin(size_t piece) const;

 private:
  void write();

  fs::path path_;
  FileDescriptor file_;
  std::thread writer_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  size_t next_ SKEIN_GUARDED_BY(mutex_) = 0;
  int64_t end_ SKEIN_GUARDED_BY(mutex_);
  std::vector<int64_t> left_bytes_ SKEIN_GUARDED_BY(mutex_);  // -1: the text was not left
  int64_t num_left_bytes_ SKEIN_GUARDED_BY(mutex_) = 0;
  int64_t to_write_ SKEIN_GUARDED_BY(mutex_) = 0;  // the disk may have what lies before
  int64_t written_ SKEIN_GUARDED_BY(mutex_) = 0;   // it has
  bool disk_is_behind_ SKEIN_GUARDED_BY(mutex_) = false;
  bool is_closed_ SKEIN_GUARDED_BY(mutex_) = false;
};

}  // namespace skein
