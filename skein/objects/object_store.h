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
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "skein/objects/object_url.h"

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

// Whether there is an object of that name, or some under it.
bool object_exists(const ObjectUrl& url);

// Asks the bucket of a URL that a person named by `setting`, so that a mistake is found before
// anything is done: Error{kUsage} naming the setting where it is not there or refuses.
void require_store(const std::string& url, const std::string& setting);

// For libraries that read where they want to: each read is a request.
std::shared_ptr<arrow::io::RandomAccessFile> open_object(const ObjectUrl& url);

// Requests of this process that were made again so far.
int64_t repeated_requests();

}  // namespace skein
