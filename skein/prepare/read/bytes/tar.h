// Members of a tar archive, in its order, as it streams by: nothing is written to a disk, so that
// no name and no link in it leads anywhere.
//
// Format   blocks of 512 bytes: a header (ustar, pax, GNU, or the older without a mark), then the
//          content, filled up with zeros. Two blocks of zeros end it; what follows them is a
//          further archive, as `cat a.tar b.tar` makes
// Left out links, devices, folders, and members whose names lead out of the archive (..)
// Errors   Error{kCorrupt} naming the archive: a header whose sum is wrong, or an end without those
//          zeros; Error{kUnsupported}: sparse members and parts of archives of several volumes
// Memory   256 KiB, and names of up to 1 MiB
// Source   POSIX.1-2017 pax, section "ustar Interchange Format"; GNU tar's manual, "Basic Tar
//          Format"
// Threads  an object: one at a time
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "skein/prepare/read/bytes/byte_source.h"

namespace skein {

constexpr size_t kTarBlockBytes = 512;

// Whether a file that begins so is an archive; takes a block.
bool is_tar(std::string_view head);

struct TarMember {
  std::string name;  // without ./ and / before it
  int64_t num_bytes = 0;
  std::string left_out;  // why it is no file to read; empty: it is one
  bool is_folder = false;
};

class TarReader {
 public:
  TarReader(std::unique_ptr<ByteSource> source, const std::string& name);

  // The next member; what is left of the last one is passed over. False at the end.
  bool next(TarMember& member);
  // The content of that member; valid until the next call of next(), as the reader is.
  std::unique_ptr<ByteSource> content();
  // The next bytes of it; 0 at its end.
  size_t read_content(std::span<char> out);

 private:
  struct Header;
  struct Extended;  // what headers before a member say of it

  bool read_block(std::string_view& block);
  bool read_header(std::string_view& block);
  std::string read_text(const Header& header);
  void take_pax(const std::string& records, Extended& extended) const;
  void pass_over_content();
  bool fill();
  [[noreturn]] void damaged(const std::string& what) const;

  std::unique_ptr<ByteSource> source_;
  std::string name_;
  std::string buffer_;
  size_t begin_ = 0;  // of what was not returned yet
  int64_t position_ = 0;
  int64_t content_left_ = 0, padding_left_ = 0;
};

}  // namespace skein
