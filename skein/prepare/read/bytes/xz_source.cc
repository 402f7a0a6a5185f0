// Streams of xz, one after another; lzma and lzip.
#include <lzma.h>

#include "skein/prepare/read/bytes/decompressor.h"
#include "skein/prepare/read/bytes/foreign_files.h"

namespace skein {
namespace {

// A dictionary of 128 MiB, twice what `xz -9` takes, and what goes with it.
constexpr uint64_t kMaxMemoryBytes = uint64_t{160} << 20;

class XzSource : public Decompressor {
 public:
  XzSource(std::unique_ptr<ByteSource> source, const std::string& name)
      : Decompressor(std::move(source), name) {
    if (lzma_auto_decoder(&stream_, kMaxMemoryBytes, LZMA_CONCATENATED) != LZMA_OK) {
      fail(ErrorCode::kInternal, "{}: liblzma does not start", name);
    }
  }
  ~XzSource() override { lzma_end(&stream_); }

  size_t read(std::span<char> out) override {
    stream_.next_out = reinterpret_cast<uint8_t*>(out.data());
    stream_.avail_out = out.size();
    while (stream_.avail_out == out.size() && !is_done_) {
      if (stream_.avail_in == 0 && !at_end_) {
        const std::string_view bytes = refill();
        stream_.next_in = reinterpret_cast<const uint8_t*>(bytes.data());
        stream_.avail_in = bytes.size();
        at_end_ = bytes.empty();
      }
      take(lzma_code(&stream_, at_end_ ? LZMA_FINISH : LZMA_RUN));
    }
    return out.size() - stream_.avail_out;
  }

 private:
  void take(lzma_ret status) {
    is_done_ = status == LZMA_STREAM_END;
    if (status == LZMA_OK || is_done_) return;
    if (status == LZMA_MEMLIMIT_ERROR) {
      fail(ErrorCode::kUnsupported,
           "{}: xz with a dictionary so large that decompressing takes {} MiB of memory: expected "
           "at most {}; `{}` makes a smaller one",
           name_, (lzma_memusage(&stream_) >> 20) + 1, kMaxMemoryBytes >> 20,
           command_on("xz -dc {} | xz > NEW.xz", name_));
    }
    if (status == LZMA_MEM_ERROR) {
      fail(ErrorCode::kNoSpace, "{}: no memory to decompress it", name_);
    }
    fail_corrupt("xz", status == LZMA_BUF_ERROR && at_end_ ? "it ends early (truncated?)"
                       : status == LZMA_FORMAT_ERROR       ? "it does not begin as xz does"
                       : status == LZMA_OPTIONS_ERROR      ? "it asks for what xz does not have"
                                                           : "bad data");
  }

  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool at_end_ = false, is_done_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> unxz(std::unique_ptr<ByteSource> source, const std::string& name) {
  return std::make_unique<XzSource>(std::move(source), name);
}

}  // namespace skein
