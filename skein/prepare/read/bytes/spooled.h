// Bytes that come by once, kept in a file without a name for as long as they are read in any order:
// Parquet and Arrow in an archive.
//
// Errors   Error{kIo | kNoSpace} of the disk, and those of the source
// Threads  an object: one at a time; readers of it several
#pragma once

#include <memory>
#include <span>
#include <string>

#include "skein/data/corpus/spool.h"
#include "skein/objects/range_reader.h"
#include "skein/prepare/read/bytes/byte_source.h"

namespace skein {

class Spooled {
 public:
  // `folder`: of the disk that holds it; empty: TMPDIR. `name`: for errors.
  Spooled(ByteSource& source, const fs::path& folder, const std::string& name);

  std::span<const std::byte> bytes() const;
  // Reads them; must not outlive this.
  std::unique_ptr<RangeReader> ranges() const;

 private:
  std::string name_;
  Spool spool_;
  std::unique_ptr<Mapped> mapped_;
};

}  // namespace skein
