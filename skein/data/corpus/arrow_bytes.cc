#include "skein/data/corpus/arrow_bytes.h"

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/io/memory.h>

#include <algorithm>
#include <cstring>

namespace skein {
namespace {

std::shared_ptr<arrow::Buffer> buffer_of(std::span<const std::byte> bytes) {
  return std::make_shared<arrow::Buffer>(reinterpret_cast<const uint8_t*>(bytes.data()),
                                         static_cast<int64_t>(bytes.size()));
}

}  // namespace

// A message is its metadata, whose length the four bytes before say, and its body.
class ArrowBytes::ObjectStream : public arrow::io::InputStream {
 public:
  explicit ObjectStream(ArrowBytes& bytes) : bytes_(bytes) {}

  arrow::Result<int64_t> Read(int64_t num_bytes, void* out) override {
    const auto part = next(num_bytes);
    try {
      const ObjectHold hold = bytes_.object_->hold(part);
      if (!part.empty()) std::memcpy(out, part.data(), part.size());
    } catch (const Error& error) {
      return failed(error);
    }
    if (part.size() == sizeof(metadata_bytes_)) std::memcpy(&metadata_bytes_, out, part.size());
    return static_cast<int64_t>(part.size());
  }

  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t num_bytes) override {
    const auto part = next(num_bytes);
    if (num_bytes == metadata_bytes_) {
      try {
        holds_.push_back(bytes_.object_->hold(part));
      } catch (const Error& error) {
        return failed(error);
      }
    }
    metadata_bytes_ = 0;
    return buffer_of(part);
  }

  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Close() override { return closed_ = true, arrow::Status::OK(); }
  bool closed() const override { return closed_; }

 private:
  std::span<const std::byte> next(int64_t num_bytes) {
    const auto left = static_cast<int64_t>(bytes_.bytes_.size()) - position_;
    const int64_t count = std::clamp<int64_t>(num_bytes, 0, left);
    const auto part =
        bytes_.bytes_.subspan(static_cast<size_t>(position_), static_cast<size_t>(count));
    position_ += count;
    return part;
  }
  arrow::Status failed(const Error& error) {
    bytes_.error_ = error;
    return arrow::Status::IOError(error.what());
  }

  ArrowBytes& bytes_;
  int64_t position_ = 0;
  int32_t metadata_bytes_ = 0;
  bool closed_ = false;
  std::vector<ObjectHold> holds_;
};

std::string ArrowBytes::copy(int64_t begin, int64_t num_bytes) const {
  const auto size = static_cast<int64_t>(bytes_.size());
  begin = std::clamp<int64_t>(begin, 0, size);
  const auto part = bytes_.subspan(static_cast<size_t>(begin),
                                   static_cast<size_t>(std::min(num_bytes, size - begin)));
  const ObjectHold hold = object_ == nullptr ? ObjectHold() : object_->hold(part);
  return {reinterpret_cast<const char*>(part.data()), part.size()};
}

std::shared_ptr<arrow::io::InputStream> ArrowBytes::stream() {
  if (object_ != nullptr) return std::make_shared<ObjectStream>(*this);
  return std::make_shared<arrow::io::BufferReader>(buffer_of(bytes_));
}

void ArrowBytes::rethrow() const {
  if (error_) throw Error(*error_);
}

}  // namespace skein
