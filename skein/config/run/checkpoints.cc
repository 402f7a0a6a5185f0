#include "skein/config/run/checkpoints.h"

#include "skein/base/files/open_file.h"
#include "skein/base/text/toml.h"
#include "skein/checkpoint/format/stored_file.h"
#include "skein/config/config.h"
#include "skein/objects/place.h"

namespace skein {
namespace {

// "" where it names none.
std::string checkpoint_dir_in(const fs::path& config_file) {
  const toml::table table = parse_toml(read_file(config_file), config_file.string());
  std::string dir = table["checkpoint"]["dir"].value_or(std::string());
  if (dir.starts_with(kConfigDir)) {
    dir = (config_file.parent_path() / ("." + dir.substr(kConfigDir.size())))
              .lexically_normal()
              .string();
    return dir;
  }
  const std::string setting = config_file.string() + ": dir in [checkpoint]";
  return Place::parse(dir, setting, PlaceUse::kDiskOrStore).text();
}

}  // namespace

fs::path checkpoints_inside(const fs::path& path) {
  const fs::path inside = path / "checkpoints";
  if (is_object_url(path)) return is_stored(inside) ? inside : path;
  if (const fs::path file = path / "config.toml"; is_there(file)) {
    if (const std::string named = checkpoint_dir_in(file); !named.empty()) return named;
  }
  return is_folder_there(inside) ? inside : path;
}

}  // namespace skein
