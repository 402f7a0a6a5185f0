// Frames of zstd, one after another.
#include <zstd.h>

#include "skein/prepare/read/bytes/decompressor.h"
#include "skein/prepare/read/bytes/foreign_files.h"

namespace skein {
namespace {

constexpr int kMaxWindowLog = 27;  // 128 MiB: zstd's own default limit

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
             "expected at most that; `{}` makes it",
             name_, (int64_t{1} << kMaxWindowLog) >> 20,
             command_on("zstd -dc --long=31 {} | zstd --long=27 > NEW.zst", name_));
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

std::unique_ptr<ByteSource> unzstd(std::unique_ptr<ByteSource> source, const std::string& name) {
  return std::make_unique<ZstdSource>(std::move(source), name);
}

}  // namespace skein
