// Where a reader gets the bytes of a checkpoint's files from: a folder, a bucket, or the memory of
// machines (replica/replica_source.h).
//
// Threads  several threads may call bytes()
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/checkpoint/format/manifest.h"

namespace skein {

class CheckpointSource {
 public:
  // Either somebody else's bytes, which stay, or `own`.
  struct Bytes {
    std::span<const std::byte> bytes;
    std::vector<std::byte> own;
  };

  virtual ~CheckpointSource() = default;
  // `count` bytes of a file, from `begin` on. Errors kNotFound, kIo, kCorrupt naming the file.
  virtual Bytes bytes(const ManifestFile& file, int64_t begin, int64_t count) = 0;
  // Those bytes are not needed any more: a checkpoint must not take as much memory as the state.
  virtual void forget(const ManifestFile& file, std::span<const std::byte> bytes) = 0;
};

class CheckpointHold;

// The files of a checkpoint's folder, mapped when first needed.
std::unique_ptr<CheckpointSource> folder_source(std::shared_ptr<const CheckpointHold> hold,
                                                const fs::path& path);
// The objects under s3://…, by ranges of what is needed.
std::unique_ptr<CheckpointSource> objects_source(const fs::path& path);

}  // namespace skein
