// Objects of S3, and of any store that speaks its protocol, listed and read.
//
// Credentials  from the usual places, in AWS's order: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
//              AWS_SESSION_TOKEN; ~/.aws/credentials (AWS_PROFILE); a web identity; the role of the
//              machine
// Store        AWS_ENDPOINT_URL_S3, else AWS_ENDPOINT_URL, else AWS's own. Region: AWS_REGION, else
//              AWS_DEFAULT_REGION, else the bucket's, which AWS is asked for
// Refusals     503, timeouts, resets and bodies that end early are asked for again, up to 10 times,
//              after random pauses of up to 0.2, 0.4, … 20 s (full jitter); repeated_requests()
//              counts them. A connection that gives nothing for 20 s is given up.
// Errors       Error{kNotFound} for a bucket or an object that is not there, Error{kCorrupt} for an
//              object that was replaced while it was read, Error{kIo} otherwise, also for
//              credentials that are refused; each names the URL
// Threads      functions may be called at once; a reader by one thread at a time. After the first
//              call the process must not fork and go on without exec.
// Source       arrow/filesystem/s3fs.h; "Exponential Backoff And Jitter", AWS Architecture Blog,
//              2015
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/objects/range_reader.h"
#include "skein/objects/url.h"

namespace arrow::io {
class RandomAccessFile;
}

namespace skein {

struct ObjectInfo {
  std::string url;
  int64_t num_bytes = 0;
  int64_t changed_ns = 0;  // since 1970, when it was written
  bool named = false;      // `url` itself, not an object under it
};

// The object of that name, or else all objects under it, in the order of their keys.
std::vector<ObjectInfo> list_objects(const ObjectUrl& url);

// The objects under `folder`, by their names there, such as "manifest.json"; none: empty.
struct StoredObject {
  std::string name;
  int64_t num_bytes = 0;
};
std::vector<StoredObject> objects_in(const fs::path& folder);

// Whether there is an object of that very name.
bool has_object(const ObjectUrl& url);

// Whether there is a regular file or an object of that very name.
bool is_file_or_object(const fs::path& path);

// Reads an object from its beginning to its end, parts of it ahead of need.
// Memory   32 MiB
class ObjectReader {
 public:
  explicit ObjectReader(const ObjectUrl& url);
  ~ObjectReader();
  ObjectReader(const ObjectReader&) = delete;
  ObjectReader& operator=(const ObjectReader&) = delete;

  // Fills the front of `out` and returns the number of bytes; 0 at the end.
  size_t read(std::span<char> out);

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

// Whether there is an object of that name, or, unlike has_object(), some under it.
bool object_exists(const ObjectUrl& url);

// Asks the bucket of a URL that a person named by `setting`, so that a mistake is found before
// anything is done: Error{kUsage} naming the setting where it is not there or refuses.
void require_store(const std::string& url, const std::string& setting);

// The object's bytes in any order. A read is a request, and one more that asks whether the object
// is still the one that was opened.
std::unique_ptr<RangeReader> open_ranges(const ObjectUrl& url);

// A file or an object, whole; one larger than `max_bytes` is refused. Errors: also those of
// read_file()
std::string read_file_or_object(const fs::path& path, int64_t max_bytes = int64_t{1} << 30);

// The whole object in a file without a name, which goes with the map. The file lies in `folder`;
// empty: TMPDIR, else /tmp. Errors: also Error{kNoSpace}
MappedFile copy_object(const ObjectUrl& url, const fs::path& folder = {},
                       const std::function<void(int64_t num_bytes)>& on_read = {});

// For libraries that read where they want to: each read is a request.
std::shared_ptr<arrow::io::RandomAccessFile> open_object(const ObjectUrl& url);

// Requests of this process that were made again so far.
int64_t repeated_requests();

}  // namespace skein
