// A place that a person names, on the command line or in a configuration: a path of a disk, or
// s3://BUCKET/KEY. It is parsed once, where it enters the program, and carried from there as one of
// the two.
//
// Format   ${NAME} anywhere is the environment variable NAME, $$ a dollar, ~ or ~/… at the front
//          the home folder. A path whose first part ends in a colon (gs://b/x, s3:/b/x, file:///x)
//          is a URL: only those that the setting takes are known. A folder that really has such a
//          name is ./gs:/x.
// Errors   Error{kUsage}, beginning with the setting's name, for a variable that is not set or
//          empty, $NAME without braces, ~name, an unknown kind of URL, one that the setting does
//          not take, and a malformed s3:// URL; each says what to write instead
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include "skein/base/files/file.h"
#include "skein/objects/url.h"

namespace skein {

enum class PlaceUse {
  kDisk,
  kDiskOrStore,  // or s3://BUCKET/KEY
  kDiskOrEtcd,   // or etcd://HOST:PORT/PREFIX, etcds://…
};

class Place {
 public:
  Place() = default;  // a place that is not named
  // The place that a path or a URL means, without variables.
  template <typename T>
  requires std::convertible_to<T, fs::path> Place(const T& meant)
      : Place(fs::path(meant), FromMeaning()) {}

  // "" is a place that is not named, and stays "". `setting`: "--out", "run.toml:3: dir in [run]".
  static Place parse(std::string_view written, const std::string& setting, PlaceUse use);

  const std::string& written() const { return written_; }
  const std::string& text() const { return path_.native(); }  // what it means: a path or a URL
  const fs::path& path() const { return path_; }
  bool is_named() const { return !path_.empty(); }
  // The object of a bucket, or all objects under it; null for a path of a disk.
  const ObjectUrl* object() const { return object_ ? &*object_ : nullptr; }
  bool is_object() const { return object_.has_value(); }
  // Whether what was written depends on the environment.
  bool has_variables() const { return text() != written_; }

  // The place beside it whose name is longer by `suffix`.
  Place with_suffix(std::string_view suffix) const;

  bool operator==(const Place& other) const { return path_ == other.path_; }

 private:
  struct FromMeaning {};
  Place(fs::path meant, FromMeaning);

  std::string written_;
  fs::path path_;
  std::optional<ObjectUrl> object_;
};

// How a path or a URL is written so that Place::parse() gives it back: $ before what would be a
// variable is $$.
std::string place_text(std::string_view meant);

}  // namespace skein
