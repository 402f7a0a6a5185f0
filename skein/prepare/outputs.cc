#include "skein/prepare/outputs.h"

#include <system_error>

#include "skein/base/error.h"
#include "skein/data/corpus_sources.h"
#include "skein/objects/object_url.h"

namespace skein {

void check_output(const char* option, const fs::path& path, bool overwrite) {
  if (is_object_url(path)) {
    fail(ErrorCode::kUsage, "{} {}: buckets are not written to yet: expected a file", option,
         path.string());
  }
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (path.empty() || !path.has_filename() || fs::is_directory(status)) {
    fail(ErrorCode::kUsage, "{} {}: is a folder: expected the name of a file, such as {}", option,
         path.empty() ? "\"\"" : path.string(), (path / "corpus.arrow").string());
  }
  if (fs::exists(status) && !overwrite) {
    fail(ErrorCode::kUsage, "{} {}: exists: name another file, or --overwrite to replace it",
         option, path.string());
  }
  if (!path.has_parent_path()) return;
  fs::create_directories(path.parent_path(), error);
  if (error) {
    fail(ErrorCode::kUsage, "{} {}: cannot make the folder {}: {}", option, path.string(),
         path.parent_path().string(), errno_text(error.value()));
  }
}

bool is_made_from(const fs::path& corpus, const std::string& made_from) {
  std::error_code error;
  if (!fs::exists(corpus, error)) return false;
  const std::optional<CorpusSources> sources = CorpusSources::beside(corpus);
  return sources && sources->made_from() == made_from;
}

void check_not_outputs(const std::vector<InputFile>& inputs, const std::vector<fs::path>& outputs) {
  for (const InputFile& input : inputs) {
    for (const fs::path& output : outputs) {
      std::error_code ignored;
      if (!fs::equivalent(input.path, output, ignored)) continue;
      fail(ErrorCode::kUsage, "{}: an input, and what is to be written as well",
           input.path.string());
    }
  }
}

}  // namespace skein
