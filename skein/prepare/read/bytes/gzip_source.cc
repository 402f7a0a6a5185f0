// Members of gzip, one after another.
#include <zlib.h>

#include <algorithm>

#include "skein/prepare/read/bytes/decompressor.h"

namespace skein {
namespace {

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
    const auto room = static_cast<uInt>(std::min<size_t>(out.size(), kPackedBytes * 4));
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

}  // namespace

std::unique_ptr<ByteSource> gunzip(std::unique_ptr<ByteSource> source, const std::string& name) {
  return std::make_unique<GzipSource>(std::move(source), name);
}

}  // namespace skein
