#include "skein/prepare/read/bytes/byte_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/text/shell_words.h"
#include "skein/objects/store.h"
#include "skein/prepare/read/bytes/compression.h"

namespace skein {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 18;
constexpr int64_t kReadAheadBytes = int64_t{4} << 20;
constexpr int64_t kBombBytes = int64_t{1} << 30;

class PlainFile : public ByteSource {
 public:
  explicit PlainFile(const fs::path& path) : path_(path), file_(open_stream(path)) {}
  size_t read(std::span<char> out) override {
    read_ahead();
    const ssize_t count =
        retry_interrupted([&] { return ::read(file_.get(), out.data(), out.size()); });
    if (count < 0) fail_errno("read");
    num_read_ += count;
    return static_cast<size_t>(count);
  }

 private:
  // More than the kernel by itself: the disk is busy with what is written.
  void read_ahead() {
    if (num_read_ + kReadAheadBytes / 2 < num_asked_) return;
    ::posix_fadvise(file_.get(), num_asked_, kReadAheadBytes, POSIX_FADV_WILLNEED);
    num_asked_ += kReadAheadBytes;
  }
  [[noreturn]] void fail_errno(const char* verb) const {
    fail(errno_code(errno), "cannot {} {}: {}", verb, path_.string(), errno_text(errno));
  }
  fs::path path_;
  FileDescriptor file_;
  int64_t num_read_ = 0;   // bytes
  int64_t num_asked_ = 0;  // that the kernel was asked to read
};

class ObjectBytes : public ByteSource {
 public:
  explicit ObjectBytes(const fs::path& url) : reader_(parse_object_url(url.native())) {}
  size_t read(std::span<char> out) override { return reader_.read(out); }

 private:
  ObjectReader reader_;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : rest_(bytes) {}
  size_t read(std::span<char> out) override {
    const size_t count = std::min(out.size(), rest_.size());
    std::copy_n(rest_.data(), count, out.data());
    rest_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view rest_;
};

// Tells how many bytes each read gave.
class CountedSource : public ByteSource {
 public:
  CountedSource(std::unique_ptr<ByteSource> source, std::function<void(int64_t)> on_read)
      : source_(std::move(source)), on_read_(std::move(on_read)) {}
  size_t read(std::span<char> out) override {
    const size_t count = source_->read(out);
    on_read_(static_cast<int64_t>(count));
    return count;
  }

 private:
  std::unique_ptr<ByteSource> source_;
  std::function<void(int64_t)> on_read_;
};

}  // namespace

std::unique_ptr<ByteSource> read_plain(const fs::path& path) {
  if (is_object_url(path)) return std::make_unique<ObjectBytes>(path);
  return std::make_unique<PlainFile>(path);
}

std::unique_ptr<ByteSource> read_memory(std::string_view bytes) {
  return std::make_unique<MemorySource>(bytes);
}

int64_t most_expanded(int64_t num_read, int64_t max_expansion) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  if (max_expansion == 0 || num_read > kAny / max_expansion) return kAny;
  return std::max(kBombBytes, num_read * max_expansion);
}

void check_expansion(const std::string& name, int64_t num_read, int64_t num_given,
                     int64_t max_expansion) {
  if (num_given <= most_expanded(num_read, max_expansion)) return;
  fail(ErrorCode::kUnsupported,
       "{}: its first {} bytes give more than {} bytes, over {} times as much: a compression "
       "bomb? --max-expansion 0 reads it nevertheless",
       name, num_read, num_given, max_expansion);
}

void GivenRows::add(int64_t num_bytes, int64_t num_read) {
  Expansion& expansion = options_.is_inside ? *options_.expansion : own_;
  if (!options_.is_inside) expansion.num_read = num_read;
  expansion.num_given += num_bytes;
  check_expansion(name_, expansion.num_read, expansion.num_given, options_.max_expansion);
}

std::string_view PeekedSource::peek(size_t num_bytes) {
  peeked_.erase(0, std::exchange(begin_, 0));
  while (peeked_.size() < num_bytes) {
    const size_t size = peeked_.size();
    peeked_.resize(num_bytes);
    const size_t count = source_->read({peeked_.data() + size, num_bytes - size});
    peeked_.resize(size + count);
    if (count == 0) break;
  }
  return peeked_;
}

size_t PeekedSource::read(std::span<char> out) {
  if (begin_ == peeked_.size()) return source_->read(out);
  const size_t count = std::min(out.size(), peeked_.size() - begin_);
  std::copy_n(peeked_.data() + begin_, count, out.data());
  begin_ += count;
  return count;
}

bool append_from(ByteSource& source, std::string& buffer, size_t num_bytes) {
  const size_t before = buffer.size();
  buffer.resize(before + num_bytes);
  const size_t count = source.read({buffer.data() + before, num_bytes});
  buffer.resize(before + count);
  return count > 0;
}

namespace {

// What was decompressed on its way here, and kept its name. Not of lzma and brotli, which have no
// mark.
void refuse_plain(std::string_view head, const Compression& named, const fs::path& path) {
  const auto is_printed = [](char byte) {
    return (byte >= ' ' && byte <= '~') || byte == '\n' || byte == '\r' || byte == '\t';
  };
  if (head.empty() || !std::all_of(head.begin(), head.end(), is_printed)) return;
  fail(ErrorCode::kCorrupt,
       "{}: damaged {} file: it begins as plain text does, and may have been decompressed before: "
       "`mv {} {}` gives it the right name",
       path.string(), named.name, shell_word(path.string()),
       shell_word((path.parent_path() / path.stem()).string()));
}

}  // namespace

std::unique_ptr<PeekedSource> unpack_bytes(std::unique_ptr<ByteSource> packed, const fs::path& path,
                                           const ByteOptions& options, std::string* unnamed) {
  auto expansion = options.expansion ? options.expansion : std::make_shared<Expansion>();
  auto source = std::make_unique<PeekedSource>(std::make_unique<CountedSource>(
      std::move(packed),
      [expansion, is_inside = options.is_inside, on_read = options.on_read](int64_t num_bytes) {
        if (!is_inside) expansion->num_read += num_bytes;
        if (on_read) on_read(num_bytes);
      }));
  const Compression* named = compression_named(path);
  const Compression* found = compression_of(source->peek(kCompressionHeadBytes));
  if (unnamed != nullptr && found != nullptr && found != named) *unnamed = found->name;
  if (found == nullptr && named != nullptr) {
    refuse_plain(source->peek(kCompressionHeadBytes), *named, path);
    found = named;
  }
  if (found == nullptr) return source;
  std::unique_ptr<ByteSource> unpacked = found->unpack(std::move(source), path.string());
  if (options.max_expansion == 0) return std::make_unique<PeekedSource>(std::move(unpacked));
  return std::make_unique<PeekedSource>(std::make_unique<CountedSource>(
      std::move(unpacked),
      [expansion, limit = options.max_expansion, name = path.string()](int64_t num_bytes) {
        expansion->num_given += num_bytes;
        check_expansion(name, expansion->num_read, expansion->num_given, limit);
      }));
}

std::unique_ptr<PeekedSource> open_bytes(const fs::path& path, const ByteOptions& options,
                                         std::string* unnamed) {
  return unpack_bytes(read_plain(path), path, options, unnamed);
}

LineReader::LineReader(std::unique_ptr<ByteSource> source, const std::string& name,
                       int64_t max_line_bytes, std::function<void(const Error&)> on_long_line)
    : source_(std::move(source)),
      name_(name),
      on_long_line_(std::move(on_long_line)),
      max_line_bytes_(static_cast<size_t>(max_line_bytes)) {}

bool LineReader::next(std::string_view& line) {
  size_t num_searched = 0;  // bytes after begin_ that hold no newline
  bool at_end = false;
  while (true) {
    const std::string_view rest = std::string_view(buffer_).substr(begin_, end_ - begin_);
    const size_t newline = rest.find('\n', num_searched);
    const size_t length = std::min(newline, rest.size());
    if (in_long_line_) {
      in_long_line_ = newline == std::string_view::npos;
      begin_ += length + (in_long_line_ ? 0 : 1);
      num_searched = 0;
      if (in_long_line_ && at_end) return false;
      if (in_long_line_) at_end = !fill();
      continue;
    }
    if (length > max_line_bytes_) {
      in_long_line_ = true;
      ++line_number_;
      const Error error(ErrorCode::kInvalid,
                        fmt::format("{}:{}: a line of more than {} bytes: expected one document a "
                                    "line",
                                    name_, line_number_, max_line_bytes_));
      if (!on_long_line_) throw error;
      on_long_line_(error);
      continue;
    }
    if (newline != std::string_view::npos || (at_end && length > 0)) {
      line = rest.substr(0, length);
      begin_ += length + (newline == std::string_view::npos ? 0 : 1);
      ++line_number_;
      return true;
    }
    if (at_end) return false;
    num_searched = length;
    at_end = !fill();
  }
}

bool LineReader::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (buffer_.size() - end_ < kChunkBytes) buffer_.resize(buffer_.size() * 2 + kChunkBytes);
  const size_t count = source_->read({buffer_.data() + end_, buffer_.size() - end_});
  end_ += count;
  return count > 0;
}

}  // namespace skein
