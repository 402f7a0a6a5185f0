// Full verification of checkpoints.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>
#include <unordered_map>

#include "skein/base/hash.h"
#include "skein/checkpoint/checkpoint_reader.h"
#include "skein/checkpoint/safetensors.h"

namespace skein {
namespace {

constexpr size_t kReadBytes = size_t{4} << 20;
constexpr int kMaxThreads = 8;

// A range of bytes and the checksum that it should have.
struct Piece {
  const ManifestFile* file;
  std::string label;  // "its header", "tensor \"x\" [0:4]"
  int64_t begin, end;
  std::string xxh3_128;
};

void read_exactly(int fd, int64_t begin, std::span<std::byte> target, const fs::path& path) {
  size_t done = 0;
  while (done < target.size()) {
    const ssize_t count = ::pread(fd, target.data() + done, target.size() - done, begin + done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      fail(errno_code(errno), "cannot read {}: {}", path.string(), errno_text(errno));
    }
    if (count == 0) {
      fail(ErrorCode::kCorrupt, "{} ends at byte {}, expected more", path.string(), begin + done);
    }
    done += static_cast<size_t>(count);
  }
}

FileDescriptor open_file(const fs::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    fail(errno_code(errno), "cannot open {}: {}", path.string(), errno_text(errno));
  }
  return file;
}

void verify_piece(const fs::path& folder, const Piece& piece, std::vector<std::byte>& buffer) {
  const fs::path path = folder / piece.file->name;
  const FileDescriptor file = open_file(path);
  Xxh3Stream hash;
  for (int64_t at = piece.begin; at < piece.end;) {
    const auto part = std::span(buffer).first(std::min<size_t>(buffer.size(), piece.end - at));
    read_exactly(file.get(), at, part, path);
    hash.update(part);
    at += static_cast<int64_t>(part.size());
  }
  if (hash.hex() != piece.xxh3_128) {
    fail(ErrorCode::kCorrupt, "{}: {} has checksum {}, expected {}", path.string(), piece.label,
         hash.hex(), piece.xxh3_128);
  }
}

void verify_sizes(const fs::path& folder, const Manifest& manifest) {
  for (const ManifestFile& file : manifest.files) {
    const fs::path path = folder / file.name;
    struct stat status {};
    if (::fstat(open_file(path).get(), &status) != 0) {
      fail(errno_code(errno), "cannot stat {}: {}", path.string(), errno_text(errno));
    }
    if (status.st_size != file.file_bytes) {
      fail(ErrorCode::kCorrupt, "{} has {} bytes, expected {}", path.string(), status.st_size,
           file.file_bytes);
    }
  }
}

// The shards that one file holds of one tensor are one tensor of its header: of their shape where
// it is one, of one dim where they are several.
bool header_agrees(const SafetensorsEntry& entry, const ManifestTensor& tensor,
                   std::span<const Shard> shards) {
  int64_t elements = 0, end = entry.begin;
  for (const Shard& shard : shards) {
    if (shard.begin != end) return false;
    end = shard.end;
    elements += shard.slice.shape.num_elements();
  }
  const Shape shape = shards.size() == 1 ? shards[0].slice.shape : Shape{elements};
  return end == entry.end && entry.shape == shape &&
         entry.dtype == to_safetensors_dtype(tensor.dtype);
}

// Each file's own header says what the manifest says.
void verify_headers(const fs::path& folder, const Manifest& manifest) {
  std::unordered_map<std::string, SafetensorsFile> files;
  for (const ManifestFile& file : manifest.files) {
    files.emplace(file.name, SafetensorsFile(folder / file.name));
  }
  for (const ManifestTensor& tensor : manifest.tensors) {
    const std::span<const Shard> shards(tensor.shards);
    for (size_t i = 0, end = 0; i < shards.size(); i = end) {
      while (end < shards.size() && shards[end].file == shards[i].file) ++end;
      const SafetensorsEntry* entry = files.at(shards[i].file).find(tensor.name);
      if (entry == nullptr || !header_agrees(*entry, tensor, shards.subspan(i, end - i))) {
        fail(ErrorCode::kCorrupt, "{}: its header and manifest.json disagree about tensor \"{}\"",
             (folder / shards[i].file).string(), tensor.name);
      }
    }
  }
}

std::vector<Piece> list_pieces(const Manifest& manifest) {
  std::vector<Piece> pieces;
  std::unordered_map<std::string, const ManifestFile*> files;
  for (const ManifestFile& file : manifest.files) {
    files[file.name] = &file;
    pieces.push_back({&file, "its header", 0, file.header_bytes, file.header_xxh3_128});
  }
  for (const ManifestTensor& tensor : manifest.tensors) {
    for (const Shard& shard : tensor.shards) {
      pieces.push_back({files.at(shard.file),
                        fmt::format("tensor \"{}\" {}", tensor.name, shard.slice.to_string()),
                        shard.begin, shard.end, shard.xxh3_128});
    }
  }
  return pieces;
}

void verify_pieces(const fs::path& folder, const std::vector<Piece>& pieces, int num_threads) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::pair<size_t, std::optional<Error>> first = {pieces.size(), std::nullopt};
  const auto work = [&] {
    std::vector<std::byte> buffer(kReadBytes);
    for (size_t i = next++; i < pieces.size(); i = next++) {
      try {
        verify_piece(folder, pieces[i], buffer);
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        if (i < first.first) first = {i, error};
        next = pieces.size();  // one is enough
      }
    }
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < num_threads; ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  if (first.second) throw *first.second;
}

}  // namespace

Result<VerifyReport> verify_checkpoint(const fs::path& path, int num_threads) {
  return try_run([&] {
    const auto start = std::chrono::steady_clock::now();
    const fs::path file = path / "manifest.json";
    const CheckpointHold hold(path);
    const Manifest manifest = parse_manifest(read_file(file), file.string());
    const auto named = step_of_folder(path);
    if (named && *named != manifest.state.step) {
      fail(ErrorCode::kCorrupt, "{} says step {}, but its folder is {}", file.string(),
           manifest.state.step, path.filename().string());
    }
    const std::vector<Piece> pieces = list_pieces(manifest);
    if (num_threads <= 0) {
      num_threads =
          std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
    }
    verify_sizes(path, manifest);
    verify_pieces(path, pieces, num_threads);
    verify_headers(path, manifest);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return VerifyReport{manifest.state.step, manifest.total_bytes(),
                        static_cast<int64_t>(pieces.size() - manifest.files.size()),
                        seconds.count()};
  });
}

}  // namespace skein
