#include "skein/evaluate/tasks/task_folders.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/machine/program_path.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(':', at), text.size());
    if (end > at) parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// 11 of python3.11; -1 of another name.
int minor_version(const std::string& name) {
  constexpr std::string_view kPrefix = "python3.";
  int minor = -1;
  if (name.starts_with(kPrefix))
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), minor);
  return minor;
}

// PREFIX/lib/python3.*, the newest first, then PREFIX/lib/python3 of Debian.
std::vector<fs::path> python_libraries(const fs::path& prefix) {
  std::vector<fs::path> libraries;
  std::error_code error;
  for (auto at = fs::directory_iterator(prefix / "lib", error); !error && at != fs::end(at);
       at.increment(error)) {
    if (minor_version(at->path().filename()) >= 0) libraries.push_back(at->path());
  }
  std::sort(libraries.begin(), libraries.end(), [](const fs::path& a, const fs::path& b) {
    return minor_version(a.filename()) > minor_version(b.filename());
  });
  libraries.push_back(prefix / "lib" / "python3");
  return libraries;
}

std::vector<fs::path> python_prefixes() {
  std::vector<fs::path> prefixes;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string prefix = environment(name); !prefix.empty())
      prefixes.emplace_back(prefix);
  }
  for (const std::string& folder : parts_of(environment("PATH"))) {
    std::error_code error;
    if (!fs::exists(fs::path(folder) / "python3", error)) continue;
    prefixes.push_back(fs::path(folder).parent_path());
    break;
  }
  if (const std::string home = environment("HOME"); !home.empty())
    prefixes.push_back(fs::path(home) / ".local");
  prefixes.emplace_back("/usr/local");
  prefixes.emplace_back("/usr");
  return prefixes;
}

std::optional<fs::path> installed_tasks() {
  for (const fs::path& prefix : python_prefixes()) {
    for (const fs::path& library : python_libraries(prefix)) {
      for (const char* packages : {"site-packages", "dist-packages"}) {
        const fs::path tasks = library / packages / "lm_eval" / "tasks";
        if (is_folder(tasks)) return tasks;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::string how_to_fetch_tasks() {
  return "pip download --no-deps lm-eval==0.4.13 && unzip -q lm_eval-0.4.13-*.whl -d lm_eval_tasks "
         "&& export SKEIN_TASKS=$PWD/lm_eval_tasks/lm_eval/tasks";
}

std::vector<fs::path> task_folders(const std::vector<fs::path>& include_paths, bool may_be_none) {
  std::vector<fs::path> folders;
  for (const std::string& folder : parts_of(environment("SKEIN_TASKS"))) {
    if (!is_folder(folder))
      fail(ErrorCode::kNotFound,
           "SKEIN_TASKS names {}, which is no folder; expected a folder of "
           "task files, such as lm_eval/tasks of an unpacked wheel",
           folder);
    const fs::path inside = fs::path(folder) / "lm_eval" / "tasks";
    folders.push_back(is_folder(inside) ? inside : fs::path(folder));
  }
  if (folders.empty()) {
    if (const auto installed = installed_tasks()) folders.push_back(*installed);
  }
  folders.insert(folders.end(), include_paths.begin(), include_paths.end());
  if (folders.empty() && !may_be_none)
    fail(ErrorCode::kNotFound,
         "no folder of task files: no include path, no SKEIN_TASKS and no Python with lm_eval; to "
         "fetch them: {}",
         how_to_fetch_tasks());
  return folders;
}

std::optional<fs::path> groups_of_skein() {
  const fs::path prefix = program_path().parent_path().parent_path();
  for (const fs::path& folder : {prefix / "share" / "skein" / "configs", prefix / "configs"}) {
    if (is_folder(folder / "eval")) return folder / "eval";
  }
  return std::nullopt;
}

}  // namespace skein
