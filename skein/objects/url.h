// s3://BUCKET/KEY, as AWS's own tools write it: the name of an object in any store that speaks S3's
// protocol.
//
// Errors   Error{kUsage} for a URL of another kind, without a bucket, or with an empty part in its
//          key
#pragma once

#include <string>
#include <string_view>

#include "skein/base/files/file.h"

namespace skein {

struct ObjectUrl {
  std::string bucket;
  std::string key;  // empty: the whole bucket

  std::string path() const { return key.empty() ? bucket : bucket + "/" + key; }
  std::string text() const { return "s3://" + path(); }
};

bool is_object_url(const fs::path& path);

// `text` may end in slashes, which mean nothing.
ObjectUrl parse_object_url(std::string_view text);

}  // namespace skein
