// Bytes that are read in parts, in any order: an object of a store, or a test's memory.
//
// Errors   Error naming the object; Error{kCorrupt} where it is no longer the one that was opened
// Threads  read() may be called by several at once
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace skein {

class RangeReader {
 public:
  virtual ~RangeReader() = default;
  virtual std::string name() const = 0;  // for errors
  virtual int64_t num_bytes() const = 0;
  // Fills `out` with the bytes from `begin` on. What it returns is of one object, the one that was
  // opened.
  virtual void read(int64_t begin, std::span<char> out) = 0;
};

}  // namespace skein
