// A place that a person names, on the command line or in a configuration: a path of a disk, or
// s3://BUCKET/KEY. It is parsed once, where it enters the program; behind that it is what it
// means.
//
// Format   ${NAME} anywhere is the environment variable NAME, $$ a dollar, ~ or ~/… at the front
//          the home folder. A path whose first part ends in a colon (gs://b/x, s3:/b/x, file:///x)
//          is a URL: only those that the setting takes are known. A folder that really has such a
//          name is ./gs:/x.
// Errors   Error{kUsage}, beginning with the setting's name, for a variable that is not set or
//          empty, $NAME without braces, ~name, an unknown kind of URL, one that the setting does
//          not take, and a malformed s3:// URL; each says what to write instead
#pragma once

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
  // "" is a place that is not named, and stays "". `setting`: "--out", "run.toml:3: dir in [run]".
  static Place parse(std::string_view written, const std::string& setting, PlaceUse use);

  const std::string& written() const { return written_; }
  const std::string& text() const { return text_; }  // what it means: a path or a URL
  fs::path path() const { return text_; }
  bool is_object() const { return is_object_url(path()); }
  // Whether what was written depends on the environment.
  bool has_variables() const { return text_ != written_; }

 private:
  std::string written_, text_;
};

// How a path or a URL is written so that Place::parse() gives it back: $ before what would be a
// variable is $$.
std::string place_text(std::string_view meant);

}  // namespace skein
