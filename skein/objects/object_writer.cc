#include "skein/objects/object_writer.h"

#include <arrow/filesystem/s3fs.h>
#include <arrow/io/interfaces.h>

#include <utility>

#include "skein/objects/s3_store.h"

namespace skein {
namespace {

// Arrow sends parts in the background, however many there are: here they are waited for.
constexpr int64_t kMostOnTheirWay = int64_t{64} << 20;

}  // namespace

ObjectWriter::ObjectWriter(const ObjectUrl& url)
    : url_(url), stream_(value_or_fail(store_of(url)->OpenOutputStream(url.path()), url.text())) {}

ObjectWriter::~ObjectWriter() {
  if (stream_ != nullptr) (void)stream_->Abort();
}

void ObjectWriter::write(std::span<const std::byte> bytes) {
  check_done(stream_->Write(bytes.data(), static_cast<int64_t>(bytes.size())), url_.text());
  num_bytes_ += static_cast<int64_t>(bytes.size());
  num_on_their_way_ += static_cast<int64_t>(bytes.size());
  if (num_on_their_way_ < kMostOnTheirWay) return;
  check_done(stream_->Flush(), url_.text());
  num_on_their_way_ = 0;
}

// A last request whose answer was lost is made again, and finds no upload any more: then the object
// is there.
void ObjectWriter::finish() {
  const arrow::Status closed = std::exchange(stream_, nullptr)->Close();
  if (closed.ok()) return;
  const auto found = store_of(url_)->GetFileInfo(url_.path());
  const bool is_lost_answer = closed.message().find("NO_SUCH_UPLOAD") != std::string::npos;
  if (is_lost_answer && found.ok() && found->size() == num_bytes_) return;
  check_done(closed, url_.text());
}

void put_object(const ObjectUrl& url, std::string_view bytes) {
  ObjectWriter writer(url);
  writer.write(std::as_bytes(std::span(bytes)));
  writer.finish();
}

void write_file_or_object(const fs::path& path, std::string_view bytes) {
  if (is_object_url(path)) return put_object(parse_object_url(path.native()), bytes);
  write_file_atomic(path, bytes);
}

void remove_object(const ObjectUrl& url) {
  const auto store = store_of(url);
  const auto found = value_or_fail(store->GetFileInfo(url.path()), url.text());
  if (found.IsFile()) check_done(store->DeleteFile(url.path()), url.text());
}

void remove_objects_under(const ObjectUrl& url) {
  const auto store = store_of(url);
  const auto found = value_or_fail(store->GetFileInfo(url.path()), url.text());
  if (found.IsDirectory()) check_done(store->DeleteDir(url.path()), url.text());
}

}  // namespace skein
