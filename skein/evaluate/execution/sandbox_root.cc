#include "skein/evaluate/execution/sandbox_root.h"

#include <algorithm>
#include <system_error>

#include "skein/base/files/file.h"

namespace skein {
namespace {

std::string relative_to_root(const fs::path& path) { return path.relative_path().string(); }

void add_folder(SandboxRoot& root, const fs::path& folder) {
  if (folder.empty() || folder == "/") return;
  add_folder(root, folder.parent_path());
  const std::string name = relative_to_root(folder);
  if (std::find(root.folders.begin(), root.folders.end(), name) == root.folders.end()) {
    root.folders.push_back(name);
  }
}

bool is_mounted(const SandboxRoot& root, const fs::path& path) {
  return std::any_of(root.mounts.begin(), root.mounts.end(), [&](const SandboxMount& mount) {
    return mount.is_folder && (path.string() + "/").starts_with(mount.source + "/");
  });
}

void mount_folder(SandboxRoot& root, const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error) || is_mounted(root, folder)) return;
  add_folder(root, folder);
  root.mounts.push_back({folder.string(), relative_to_root(folder), true, false});
}

void mount_file(SandboxRoot& root, const fs::path& file, bool is_device) {
  std::error_code error;
  if (!fs::exists(file, error)) return;
  add_folder(root, file.parent_path());
  root.mounts.push_back({file.string(), relative_to_root(file), false, is_device});
}

}  // namespace

SandboxRoot sandbox_root(const PythonInterpreter& python) {
  SandboxRoot root;
  add_folder(root, "/tmp");
  mount_folder(root, "/usr");
  for (const char* const name : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    std::error_code error;
    if (fs::is_symlink(name, error)) {
      root.links.emplace_back(fs::read_symlink(name, error).string(), relative_to_root(name));
    } else {
      mount_folder(root, name);
    }
  }
  for (const fs::path& folder : python.folders) mount_folder(root, folder);
  mount_file(root, "/etc/ld.so.cache", false);
  for (const char* const name : {"null", "zero", "full", "random", "urandom"}) {
    mount_file(root, fs::path("/dev") / name, true);
  }
  root.links.emplace_back("/tmp", "dev/shm");
  return root;
}

}  // namespace skein
