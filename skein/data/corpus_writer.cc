#include "skein/data/corpus_writer.h"

#include <arrow/array/data.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr int64_t kWriteBytes = int64_t{8} << 20;
constexpr int64_t kCopyBytes = int64_t{64} << 20;

// Copies with reads and writes, where the kernel cannot copy between two files.
void copy_by_hand(int from, FileRange range, int to, const fs::path& source, const fs::path& path) {
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(kWriteBytes, range.num_bytes)));
  while (range.num_bytes > 0) {
    const auto wanted = static_cast<size_t>(std::min(kWriteBytes, range.num_bytes));
    const ssize_t count =
        retry_interrupted([&] { return ::pread(from, buffer.data(), wanted, range.begin); });
    if (count < 0) {
      fail(errno_code(errno), "cannot read {}: {}", source.string(), errno_text(errno));
    }
    if (count == 0)
      fail(ErrorCode::kCorrupt, "{}: was cut short while it was read", source.string());
    write_all(to, std::span(buffer).first(static_cast<size_t>(count)), path);
    range.begin += count;
    range.num_bytes -= count;
  }
}

// Appends a range of the file `from` to `to`, and has the disk begin to write it.
void copy_range(int from, FileRange range, int to, const fs::path& source, const fs::path& path) {
  while (range.num_bytes > 0) {
    const auto wanted = static_cast<size_t>(std::min(kCopyBytes, range.num_bytes));
    off_t begin = range.begin;
    const ssize_t count =
        retry_interrupted([&] { return ::copy_file_range(from, &begin, to, nullptr, wanted, 0); });
    if (count <= 0) return copy_by_hand(from, range, to, source, path);  // says why, if it fails
    range.begin += count;
    range.num_bytes -= count;
    ::sync_file_range(to, 0, 0, SYNC_FILE_RANGE_WRITE);
  }
}

}  // namespace

CorpusWriter::CorpusWriter(const fs::path& out)
    : out_((out.has_parent_path() ? fs::create_directories(out.parent_path()) : false, out)),
      text_(unique_partial(out)),
      offsets_(unique_partial(out)),
      ranges_(unique_partial(out)),
      files_{text_.path()} {
  append_offset();
}

void CorpusWriter::append(std::string_view text) {
  append(FileRange{0, text_.num_bytes(), static_cast<int64_t>(text.size())});
  text_.append(text);
}

int64_t CorpusWriter::add_file(const fs::path& path) {
  files_.push_back(path);
  return static_cast<int64_t>(files_.size()) - 1;
}

void CorpusWriter::append(const FileRange& text) {
  if (text.file == range_.file && text.begin == range_.begin + range_.num_bytes) {
    range_.num_bytes += text.num_bytes;
  } else {
    flush_range();
    range_ = text;
  }
  num_bytes_ += text.num_bytes;
  append_offset();
  ++num_documents_;
}

void CorpusWriter::append_offset() {
  offsets_.append({reinterpret_cast<const char*>(&num_bytes_), sizeof(num_bytes_)});
}

void CorpusWriter::flush_range() {
  if (range_.num_bytes > 0) {
    ranges_.append({reinterpret_cast<const char*>(&range_), sizeof(range_)});
  }
  range_ = {};
}

void CorpusWriter::copy_text(int to, const fs::path& path) const {
  const Mapped mapped(ranges_);
  const std::span ranges(reinterpret_cast<const FileRange*>(mapped.data()),
                         static_cast<size_t>(mapped.size()) / sizeof(FileRange));
  FileDescriptor opened;
  int64_t opened_file = 0;
  for (const FileRange& range : ranges) {
    const fs::path& source = files_[static_cast<size_t>(range.file)];
    if (range.file != 0 && range.file != opened_file) {
      opened = FileDescriptor(::open(source.c_str(), O_RDONLY | O_CLOEXEC));
      opened_file = range.file;
      if (opened.get() < 0) {
        fail(errno_code(errno), "cannot open {}: {}", source.string(), errno_text(errno));
      }
    }
    copy_range(range.file == 0 ? text_.fd() : opened.get(), range, to, source, path);
  }
}

void CorpusWriter::commit() {
  flush_range();
  text_.flush();
  offsets_.flush();
  ranges_.flush();
  const auto text = std::make_shared<Mapped>(num_bytes_, out_);
  const auto offsets = std::make_shared<Mapped>(offsets_);
  const auto column =
      arrow::ArrayData::Make(arrow::large_utf8(), num_documents_, {nullptr, offsets, text}, 0);
  const auto batch = arrow::RecordBatch::Make(
      arrow::schema({arrow::field("text", arrow::large_utf8())}), num_documents_,
      std::vector<std::shared_ptr<arrow::ArrayData>>{column});
  write_arrow_stream(out_, *batch, [&](const void* address, int to, const fs::path& path) {
    if (address == offsets->data()) {
      copy_range(offsets_.fd(), {0, 0, offsets_.num_bytes()}, to, offsets_.path(), path);
    } else if (address == text->data()) {
      copy_text(to, path);
    } else {
      return false;
    }
    return true;
  });
}

}  // namespace skein
