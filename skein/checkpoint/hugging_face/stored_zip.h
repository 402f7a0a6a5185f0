// The table of a zip file whose files are stored as they are, not compressed: where each lies.
//
// Format   end record (PK\5\6), with more than 4 GiB or 65,535 files the zip64 one (PK\6\6) too;
//          central directory (PK\1\2); local headers (PK\3\4), each followed by the file's bytes
// Accepts  one disk; method 0, no encryption; files inside it, under names that do not repeat, and
//          without overlap: what torch.save writes. Checksums are not compared
// Errors   Error{kInvalid | kUnsupported} naming the zip file, the file in it, and what was found
// Source   PKWARE, APPNOTE.TXT 6.3.10, section 4.3
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace skein {

struct StoredRange {
  int64_t begin = 0, end = 0;  // bytes of the zip file
  int64_t num_bytes() const { return end - begin; }
};

// `what` names the zip file in errors.
std::map<std::string, StoredRange, std::less<>> parse_stored_zip(std::span<const std::byte> file,
                                                                 const std::string& what);

}  // namespace skein
