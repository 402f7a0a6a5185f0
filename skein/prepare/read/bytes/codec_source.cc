// What Arrow's library has a codec for: streams of bzip2, frames of lz4, one after another, and
// brotli.
#include <arrow/util/compression.h>

#include "skein/prepare/read/bytes/decompressor.h"

namespace skein {
namespace {

class CodecSource : public Decompressor {
 public:
  CodecSource(std::unique_ptr<ByteSource> source, const std::string& name, const char* format,
              arrow::Compression::type type)
      : Decompressor(std::move(source), name), format_(format) {
    auto codec = arrow::util::Codec::Create(type);
    if (!codec.ok()) {
      fail(ErrorCode::kUnsupported, "{}: this Arrow was built without {}: decompress it first",
           name, format);
    }
    codec_ = *std::move(codec);
    auto decompressor = codec_->MakeDecompressor();
    if (!decompressor.ok()) fail(ErrorCode::kInternal, "{}: {} does not start", name, format);
    decompressor_ = *std::move(decompressor);
  }

  size_t read(std::span<char> out) override {
    while (!out.empty()) {
      if (input_.empty() && !at_end_) {
        input_ = refill();
        at_end_ = input_.empty();
      }
      if (at_end_ && (is_between_ || decompressor_->IsFinished()) && has_begun_) return 0;
      if (is_between_ && !input_.empty()) begin_next();
      const size_t count = decompress(out);
      if (count > 0) return count;
      if (at_end_ && !is_between_) fail_corrupt(format_, "it ends early (truncated?)");
    }
    return 0;
  }

 private:
  void begin_next() {
    if (!decompressor_->Reset().ok()) fail_corrupt(format_, "it cannot be read on");
    is_between_ = false;
  }

  size_t decompress(std::span<char> out) {
    has_begun_ = has_begun_ || !input_.empty();
    const auto result = decompressor_->Decompress(
        static_cast<int64_t>(input_.size()), reinterpret_cast<const uint8_t*>(input_.data()),
        static_cast<int64_t>(out.size()), reinterpret_cast<uint8_t*>(out.data()));
    if (!result.ok()) fail_corrupt(format_, "bad data");
    input_.remove_prefix(static_cast<size_t>(result->bytes_read));
    is_between_ = decompressor_->IsFinished();
    const bool is_stuck = result->bytes_read == 0 && result->bytes_written == 0 && !is_between_;
    if (is_stuck && !input_.empty()) fail_corrupt(format_, "bad data");
    return static_cast<size_t>(result->bytes_written);
  }

  const char* format_;
  std::unique_ptr<arrow::util::Codec> codec_;
  std::shared_ptr<arrow::util::Decompressor> decompressor_;
  std::string_view input_;
  // An empty file is none.
  bool has_begun_ = false, is_between_ = false, at_end_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> unbzip2(std::unique_ptr<ByteSource> source, const std::string& name) {
  return std::make_unique<CodecSource>(std::move(source), name, "bzip2", arrow::Compression::BZ2);
}

std::unique_ptr<ByteSource> unlz4(std::unique_ptr<ByteSource> source, const std::string& name) {
  return std::make_unique<CodecSource>(std::move(source), name, "lz4",
                                       arrow::Compression::LZ4_FRAME);
}

std::unique_ptr<ByteSource> unbrotli(std::unique_ptr<ByteSource> source, const std::string& name) {
  return std::make_unique<CodecSource>(std::move(source), name, "brotli",
                                       arrow::Compression::BROTLI);
}

}  // namespace skein
