// Bytes of a file, plain or decompressed, and its lines, streamed in bounded memory.
//
// Errors   Error{kIo | kNotFound | kCorrupt} naming the file; a compressed file that ends early is
//          kCorrupt. Error{kUnsupported}: a compression bomb, and what compression.h refuses
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "skein/base/error.h"
#include "skein/base/files/file.h"

namespace skein {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills the front of `out` and returns the number of bytes; 0 at the end.
  virtual size_t read(std::span<char> out) = 0;
};

// A source whose first bytes may be looked at before they are read.
class PeekedSource : public ByteSource {
 public:
  explicit PeekedSource(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  // The next bytes, so many or what there is; valid until the next call.
  std::string_view peek(size_t num_bytes);
  size_t read(std::span<char> out) override;

 private:
  std::unique_ptr<ByteSource> source_;
  std::string peeked_;
  size_t begin_ = 0;  // of what of it has not been read
};

// A file, or an object (s3://…).
std::unique_ptr<ByteSource> read_plain(const fs::path& path);
std::unique_ptr<ByteSource> read_memory(std::string_view bytes);  // must outlive the source

// Appends up to so many bytes of the source; false at its end.
bool append_from(ByteSource& source, std::string& buffer, size_t num_bytes);

// What was read of a file so far, and what it gave; of an archive also what its members gave that
// are compressed themselves.
struct Expansion {
  int64_t num_read = 0;
  int64_t num_given = 0;
};

struct ByteOptions {
  // A file that gives more than a GiB, and more than this many times its own size so
  // far, is taken for a bomb; 0: none is.
  int64_t max_expansion = 1000;
  // Counted here; null: nobody else wants to know. Members of an archive, which are inside, count
  // for the archive.
  std::shared_ptr<Expansion> expansion;
  bool is_inside = false;
  std::function<void(int64_t)> on_read;  // is told the number of bytes of each read of the file
};

// How many bytes a file may give, of which so many were read. Int64's largest: any.
int64_t most_expanded(int64_t num_read, int64_t max_expansion);
void check_expansion(const std::string& name, int64_t num_read, int64_t num_given,
                     int64_t max_expansion);

// The same, counted for a table: rows that it gives.
class GivenRows {
 public:
  GivenRows(std::string name, const ByteOptions& options)
      : name_(std::move(name)), options_(options) {}
  // `num_read`: of the table's bytes so far.
  void add(int64_t num_bytes, int64_t num_read);

 private:
  std::string name_;
  const ByteOptions& options_;
  Expansion own_;
};

// Opens `path`, and decompresses it if its first bytes are those of a compression, or its name says
// so (compression.h). `unnamed` gets the compression that its name does not tell.
std::unique_ptr<PeekedSource> open_bytes(const fs::path& path, const ByteOptions& options = {},
                                         std::string* unnamed = nullptr);
// The same of bytes that come from elsewhere; `path` is their name.
std::unique_ptr<PeekedSource> unpack_bytes(std::unique_ptr<ByteSource> packed, const fs::path& path,
                                           const ByteOptions& options = {},
                                           std::string* unnamed = nullptr);

class LineReader {
 public:
  // Lines longer than `max_line_bytes` are Error{kInvalid}, or are passed over after a call of
  // `on_long_line`, if there is one.
  LineReader(std::unique_ptr<ByteSource> source, const std::string& name, int64_t max_line_bytes,
             std::function<void(const Error&)> on_long_line = {});

  // The next line without its newline; valid until the next call. False at the end.
  bool next(std::string_view& line);
  int64_t line_number() const { return line_number_; }  // of the line from next(): 1, 2, ...

 private:
  bool fill();

  std::unique_ptr<ByteSource> source_;
  std::string name_;
  std::function<void(const Error&)> on_long_line_;
  size_t max_line_bytes_;
  std::string buffer_;
  size_t begin_ = 0;  // of what has not been returned yet
  size_t end_ = 0;    // of what has been read
  int64_t line_number_ = 0;
  bool in_long_line_ = false;  // its rest is to be passed over
};

}  // namespace skein
