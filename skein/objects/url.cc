#include "skein/objects/url.h"

#include <algorithm>
#include <cctype>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr std::string_view kScheme = "s3://";

bool is_in_bucket_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
}

}  // namespace

bool is_object_url(const fs::path& path) { return path.native().starts_with(kScheme); }

ObjectUrl parse_object_url(std::string_view text) {
  if (!text.starts_with(kScheme)) {
    fail(ErrorCode::kUsage, "{}: expected s3://BUCKET/KEY", text);
  }
  std::string_view rest = text.substr(kScheme.size());
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const size_t slash = std::min(rest.find('/'), rest.size());
  ObjectUrl url{std::string(rest.substr(0, slash)),
                std::string(rest.substr(std::min(slash + 1, rest.size())))};
  if (url.bucket.empty() || !std::all_of(url.bucket.begin(), url.bucket.end(), is_in_bucket_name)) {
    fail(ErrorCode::kUsage, "{}: '{}' cannot be a bucket: expected s3://BUCKET/KEY", text,
         url.bucket);
  }
  if (url.key.starts_with('/') || url.key.find("//") != std::string::npos) {
    fail(ErrorCode::kUsage, "{}: an empty part in its key: expected one slash between two parts",
         text);
  }
  return url;
}

}  // namespace skein
