// A file of records that training appends to and does not end for: what a full or failing disk does
// not take waits in memory, and is written with what follows. Where only another descriptor helps,
// as after a server of NFS was started again, the file is opened again by its path, and goes on
// behind what is there: no line is missing or doubled.
//
// Cost     one write() and lseek() a record, while the disk takes it.
// Errors   Error{kIo | kNoSpace | …} naming the file: any that waiting cannot mend, at once; else
//          where more waits than kMostWaiting, or still waits at `finish`.
// Threads  one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "skein/base/files/file.h"

namespace skein {

class PatientFile {
 public:
  static constexpr size_t kMostWaiting = size_t{16} << 20;

  // What follows a record of which only a part was taken.
  enum class AfterATear {
    kRest,       // the rest of it
    kLineAgain,  // a line break, and the line from its beginning: others append to the file as well
  };
  // `torn`: the file ends within a line.
  PatientFile(FileDescriptor file, fs::path path, AfterATear after, bool torn = false);
  PatientFile(PatientFile&&) noexcept = default;
  ~PatientFile();  // writes what waits, or logs that it is lost

  void append(std::string_view record);
  // Everything is written, or an error says what is not.
  void finish();

 private:
  int write_waiting();  // 0, or an errno
  bool reopen(int problem);
  void drop_found(std::string_view added);
  void taken(size_t bytes);

  FileDescriptor file_;
  fs::path path_;
  AfterATear after_;
  bool torn_;
  int64_t end_;  // of the file, where this process last saw it
  std::string waiting_;
  bool has_warned_ = false;
};

}  // namespace skein
