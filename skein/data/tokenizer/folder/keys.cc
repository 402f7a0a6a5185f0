#include "skein/data/tokenizer/folder/keys.h"

#include <algorithm>
#include <array>

#include "skein/base/text/foreign_keys.h"
#include "skein/data/tokenizer/folder/files.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

struct NamedFile {
  std::string_view name;
  ForeignJson file;
};
constexpr std::array<NamedFile, 3> kFiles = {{
    {"tokenizer_config.json", ForeignJson::kTokenizerConfig},
    {"special_tokens_map.json", ForeignJson::kSpecialTokensMap},
    {"tokenizer.json", ForeignJson::kTokenizer},
}};

const fs::path* find(std::span<const fs::path> files, std::string_view name) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const fs::path& each) { return each.filename() == name; });
  return found == files.end() ? nullptr : &*found;
}

Json read(const fs::path& file) {
  return parse_json(read_file_or_object(file, kMaxTokenizerBytes), file.string());
}

}  // namespace

std::vector<std::string> unknown_tokenizer_keys(std::span<const fs::path> files) {
  std::vector<std::string> lines;
  for (const NamedFile& named : kFiles) {
    const fs::path* file = find(files, named.name);
    if (file == nullptr) continue;
    std::string line = unknown_keys_text(file->string(), unknown_keys(named.file, read(*file)));
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace skein
