#include "skein/prepare/read/byte_source.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "skein/base/error.h"
#include "skein/objects/object_store.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 18;
constexpr int64_t kReadAheadBytes = int64_t{4} << 20;
constexpr int64_t kBombBytes = int64_t{1} << 30;
constexpr int kMaxWindowLog = 27;  // 128 MiB: zstd's own default limit

class PlainFile : public ByteSource {
 public:
  explicit PlainFile(const fs::path& path)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_.get() < 0) fail_errno("open");
  }
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

// The common part of both decompressors: compressed bytes, refilled from `source`.
class Decompressor : public ByteSource {
 protected:
  Decompressor(std::unique_ptr<ByteSource> source, const std::string& name)
      : name_(name), source_(std::move(source)), compressed_(kChunkBytes, '\0') {}

  // More compressed bytes; empty at the end of the file.
  std::string_view refill() {
    return {compressed_.data(), source_->read({compressed_.data(), compressed_.size()})};
  }
  [[noreturn]] void fail_corrupt(const char* format, const char* found) const {
    fail(ErrorCode::kCorrupt, "{}: damaged {} file: {}", name_, format, found);
  }

  std::string name_;

 private:
  std::unique_ptr<ByteSource> source_;
  std::string compressed_;
};

class GzipSource : public Decompressor {
 public:
  GzipSource(std::unique_ptr<ByteSource> source, const std::string& name)
      : Decompressor(std::move(source), name) {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) {
      fail(ErrorCode::kInternal, "{}: zlib does not start", name);
    }
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  size_t read(std::span<char> out) override {
    const auto room = static_cast<uInt>(std::min<size_t>(out.size(), kChunkBytes * 4));
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = room;
    while (stream_.avail_out == room) {
      if (stream_.avail_in == 0 && !more_input()) return 0;
      // A file may hold several members one after another, and zeros that pad a block of a tape or
      // a disk.
      if (between_members_) {
        if (skip_zeros()) continue;
        inflateReset(&stream_);
      }
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        fail_corrupt("gzip", stream_.msg != nullptr ? stream_.msg : "bad data");
      }
      between_members_ = status == Z_STREAM_END;
    }
    return room - stream_.avail_out;
  }

 private:
  bool more_input() {
    const std::string_view bytes = refill();
    if (bytes.empty() && !between_members_) fail_corrupt("gzip", "it ends early (truncated?)");
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    return !bytes.empty();
  }

  // True if the input is used up.
  bool skip_zeros() {
    while (stream_.avail_in > 0 && *stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
    }
    return stream_.avail_in == 0;
  }

  z_stream stream_{};
  bool between_members_ = false;
};

class ZstdSource : public Decompressor {
 public:
  ZstdSource(std::unique_ptr<ByteSource> source, const std::string& name)
      : Decompressor(std::move(source), name), context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
    if (context_ == nullptr) fail(ErrorCode::kInternal, "{}: zstd does not start", name);
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }

  size_t read(std::span<char> out) override {
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    while (output.pos == 0) {
      // zstd may still hold decoded bytes when its input is used up.
      if (input_.pos == input_.size && !has_output_ && !more_input()) return 0;
      frame_left_ = ZSTD_decompressStream(context_.get(), &output, &input_);
      const bool is_error = ZSTD_isError(frame_left_) != 0;
      const std::string_view found = is_error ? ZSTD_getErrorName(frame_left_) : "";
      if (found.find("too much memory") != std::string_view::npos) {
        fail(ErrorCode::kUnsupported,
             "{}: zstd with a window of more than {} MiB, which decompressing takes of memory: "
             "expected at most that; `zstd -d --long=31 | zstd --long={}` makes it",
             name_, (int64_t{1} << kMaxWindowLog) >> 20, kMaxWindowLog);
      }
      if (is_error) fail_corrupt("zstd", found.data());
      has_output_ = output.pos == output.size && frame_left_ != 0;
    }
    return output.pos;
  }

 private:
  bool more_input() {
    const std::string_view bytes = refill();
    if (bytes.empty() && frame_left_ != 0) fail_corrupt("zstd", "it ends early (truncated?)");
    input_ = {bytes.data(), bytes.size(), 0};
    return !bytes.empty();
  }

  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  size_t frame_left_ = 1;  // 0: between frames; an empty file is not a zstd file
  bool has_output_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> read_plain(const fs::path& path) {
  if (is_object_url(path)) return std::make_unique<ObjectBytes>(path);
  return std::make_unique<PlainFile>(path);
}

std::unique_ptr<ByteSource> read_memory(std::string_view bytes) {
  return std::make_unique<MemorySource>(bytes);
}

std::unique_ptr<ByteSource> gunzip(std::unique_ptr<ByteSource> source, const std::string& name) {
  return std::make_unique<GzipSource>(std::move(source), name);
}

std::unique_ptr<ByteSource> unzstd(std::unique_ptr<ByteSource> source, const std::string& name) {
  return std::make_unique<ZstdSource>(std::move(source), name);
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

namespace {

std::string named_compression(const fs::path& path) {
  const std::string ending = lower_case(path.extension().string());
  if (ending == ".gz" || ending == ".gzip") return "gzip";
  return ending == ".zst" || ending == ".zstd" ? "zstd" : "";
}

std::string compression_of(std::string_view head, const std::string& named) {
  if (head.starts_with("\x1f\x8b")) return "gzip";
  return head.starts_with("\x28\xb5\x2f\xfd") ? "zstd" : named;
}

}  // namespace

bool is_named_compressed(const fs::path& path) { return !named_compression(path).empty(); }

std::unique_ptr<PeekedSource> open_bytes(const fs::path& path, const ByteOptions& options,
                                         std::string* unnamed) {
  auto num_read = std::make_shared<int64_t>(0);
  auto source = std::make_unique<PeekedSource>(
      std::make_unique<CountedSource>(read_plain(path), [num_read, options](int64_t num_bytes) {
        *num_read += num_bytes;
        if (options.on_read) options.on_read(num_bytes);
      }));
  const std::string named = named_compression(path), found = compression_of(source->peek(4), named);
  if (unnamed != nullptr && found != named) *unnamed = found;
  if (found.empty()) return source;
  std::unique_ptr<ByteSource> unpacked =
      (found == "gzip" ? gunzip : unzstd)(std::move(source), path.string());
  if (options.max_expansion == 0) return std::make_unique<PeekedSource>(std::move(unpacked));
  return std::make_unique<PeekedSource>(std::make_unique<CountedSource>(
      std::move(unpacked), [num_read, limit = options.max_expansion, num_given = int64_t{0},
                            name = path.string()](int64_t num_bytes) mutable {
        num_given += num_bytes;
        check_expansion(name, *num_read, num_given, limit);
      }));
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
