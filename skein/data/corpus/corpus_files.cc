#include "skein/data/corpus/corpus_files.h"

#include <system_error>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/data/corpus/shard_set.h"
#include "skein/objects/url.h"

namespace skein {

std::vector<fs::path> corpus_files(const fs::path& path) {
  const bool is_object = is_object_url(path);
  if (!is_object && !is_folder_there(path)) return {path};
  const std::vector<fs::path> files = files_in_folder(path);
  if (is_object && files == std::vector<fs::path>{parse_object_url(path.native()).text()}) {
    return files;
  }
  if (files.empty()) {
    fail(ErrorCode::kInvalid,
         "{}: a folder without .arrow files: expected a corpus, or a folder of those that `skein "
         "data ingest` writes",
         path.string());
  }
  check_shard_names(path, files);
  return files;
}

}  // namespace skein
