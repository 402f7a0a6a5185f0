// A file or an object as Arrow's libraries read it: where they want to, and with errors that stay
// what they are. To these libraries whatever goes wrong is a damaged file.
//
// Errors   of the disk or the store, and Error{kCorrupt} for an object that was replaced meanwhile:
//          rethrow() throws what a read has met
// Threads  as Arrow's readers: one at a time
#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/objects/range_reader.h"

namespace skein {

class ArrowInput : public arrow::io::RandomAccessFile {
 public:
  explicit ArrowInput(const fs::path& path);
  explicit ArrowInput(std::unique_ptr<RangeReader> bytes) : bytes_(std::move(bytes)) {}

  int64_t num_bytes() const { return bytes_->num_bytes(); }
  int64_t num_read() const { return num_read_; }
  // Throws the error that a read has met, if one has.
  void rethrow() const;

  arrow::Status Close() override { return closed_ = true, arrow::Status::OK(); }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Seek(int64_t position) override;
  arrow::Result<int64_t> GetSize() override { return num_bytes(); }
  arrow::Result<int64_t> Read(int64_t num_bytes, void* out) override;
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t num_bytes) override;
  arrow::Result<int64_t> ReadAt(int64_t position, int64_t num_bytes, void* out) override;
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position,
                                                       int64_t num_bytes) override;

 private:
  std::unique_ptr<RangeReader> bytes_;
  int64_t position_ = 0, num_read_ = 0;
  bool closed_ = false;
  std::optional<Error> error_;
};

// Memory for what is decoded of a file of `num_bytes`: at most a GiB, or `max_expansion` times the
// file where that is more; 0: any (ByteOptions). More is Status::OutOfMemory.
class DecodingMemory : public arrow::MemoryPool {
 public:
  DecodingMemory(int64_t num_bytes, int64_t max_expansion)
      : num_file_bytes_(num_bytes), max_expansion_(max_expansion) {}

  // Throws Error{kUnsupported} if more was asked for: that is what is wrong, whatever a library
  // made of it.
  void check(const std::string& name) const;

  using MemoryPool::Allocate;
  using MemoryPool::Free;
  using MemoryPool::Reallocate;
  arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override;
  arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment,
                           uint8_t** out) override;
  void Free(uint8_t* bytes, int64_t size, int64_t alignment) override {
    pool_.Free(bytes, size, alignment);
  }
  int64_t bytes_allocated() const override { return pool_.bytes_allocated(); }
  int64_t total_bytes_allocated() const override { return pool_.total_bytes_allocated(); }
  int64_t num_allocations() const override { return pool_.num_allocations(); }
  std::string backend_name() const override { return pool_.backend_name(); }

 private:
  arrow::Status reserve(int64_t num_bytes);

  int64_t num_file_bytes_, max_expansion_;
  bool is_exceeded_ = false;
  arrow::ProxyMemoryPool pool_{arrow::default_memory_pool()};
};

}  // namespace skein
